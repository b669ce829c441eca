#!/bin/bash
# Slurm job for spiked-mpi: sbatch this file. Rank 0 distributes the work and writes the store; the others compute.
#SBATCH --job-name=spiked
#SBATCH --ntasks=32
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
export OPENBLAS_NUM_THREADS=1
# Two minutes before the end the ranks are asked to stop; committed results are kept, and exit code 75 means "resume".
srun spiked-mpi run STUDY.toml &
job=$!
trap 'kill -USR1 $job' USR1
wait $job; code=$?
while kill -0 $job 2>/dev/null; do wait $job; code=$?; done
if [ $code -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi
exit $code
