// `spiked-mpi`: the command `spiked run` on many machines. Rank 0 reads the study, deals out batches, writes the store
// and draws the report; the other ranks compute. Numbers do not depend on the number of ranks.
#include <fmt/format.h>
#include <mpi.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "app/build_info.hpp"
#include "app/entry.hpp"
#include "app/study_run.hpp"
#include "theory/base/error.hpp"
#include "validation/batch_bytes.hpp"
#include "validation/study.hpp"

namespace spiked::app {
namespace {

using validation::Batch;
using validation::BatchJob;

enum Tag : int { tag_study = 1, tag_job, tag_batch, tag_problem, tag_done };

void send(const std::string& bytes, int to, Tag tag) {
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw usage_error("a batch of {} bytes is too large for one message: use a smaller run.reps.batch",
                          bytes.size());
    MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD);
}

struct Message {
    int from = 0;
    int tag = 0;
    std::string bytes;
};

Message receive(int from) {
    MPI_Status status;
    MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    Message message{status.MPI_SOURCE, status.MPI_TAG, std::string(static_cast<std::size_t>(size), '\0')};
    MPI_Recv(message.bytes.data(), size, MPI_BYTE, message.from, message.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return message;
}

std::string job_bytes(const BatchJob& job) { return {reinterpret_cast<const char*>(&job), sizeof job}; }

/// The study as rank 0 read it: text, its name in messages, seed, and what --set changed.
std::string study_bytes(const validation::Study& study) {
    return Json::object({{"text", study.experiment.config_source},
                         {"seed", study.experiment.seed.text()},
                         {"science_hash", study.experiment.science_hash()},
                         {"set", study.experiment.config_set}})
        .text();
}

/// Rank 0: hands jobs to ranks that ask for work until there are none, or until the run is to stop.
class Ranks {
public:
    explicit Ranks(int workers) : workers_(workers) {}

    void run(const validation::Study& study, const std::vector<BatchJob>& jobs,
             const std::function<void(Batch)>& finished, const std::function<bool()>& halted) {
        if (!told_) {
            for (int rank = 1; rank <= workers_; ++rank) send(study_bytes(study), rank, tag_study);
            told_ = true;
        }
        std::size_t next = 0;
        int busy = 0;
        for (int rank = 1; rank <= workers_ && next < jobs.size() && !halted(); ++rank, ++busy)
            send(job_bytes(jobs[next++]), rank, tag_job);
        while (busy > 0) {
            const Message message = receive(MPI_ANY_SOURCE);
            --busy;
            if (message.tag == tag_problem) {
                const auto code = static_cast<ExitCode>(message.bytes.front());
                throw Error(code, fmt::format("rank {}: {}", message.from, message.bytes.substr(1)));
            }
            finished(validation::batch_from_bytes(message.bytes));
            if (next < jobs.size() && !halted()) {
                send(job_bytes(jobs[next++]), message.from, tag_job);
                ++busy;
            }
        }
    }
    void dismiss() {
        for (int rank = 1; rank <= workers_; ++rank) send("", rank, tag_done);
    }

private:
    int workers_;
    bool told_ = false;
};

/// Every other rank: computes what it is sent. What goes wrong is told to rank 0, which ends the job with the cause.
void serve() {
    // Stopping is up to rank 0; mpirun hands its own signals to every rank.
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, SIG_IGN);
    std::optional<validation::Study> study;
    while (true) {
        const Message message = receive(0);
        if (message.tag == tag_done) return;
        try {
            if (message.tag == tag_study) {
                const Json told = Json::parse(message.bytes, "the study of rank 0", 64);
                study = validation::reread_study(*told.find("text")->string(), *told.find("set"),
                                                 *told.find("seed")->string(), "study");
                if (study->experiment.science_hash() != *told.find("science_hash")->string())
                    throw input_error(
                        "the study reads differently here than on rank 0 (its files differ): give every "
                        "machine the same files");
            } else {
                BatchJob job{};
                std::memcpy(&job, message.bytes.data(), sizeof job);
                send(batch_bytes(validation::run_batch(study->experiment, job)), 0, tag_batch);
            }
        } catch (const Error& error) {
            send(static_cast<char>(error.code()) + std::string(error.what()), 0, tag_problem);
        } catch (const std::exception& error) {
            send(static_cast<char>(ExitCode::bug) + std::string(error.what()), 0, tag_problem);
        }
    }
}

}  // namespace
}  // namespace spiked::app

int main(int argc, char** argv) {
    using namespace spiked;
    MPI_Init(&argc, &argv);
    int rank = 0;
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank > 0) {
        app::use_one_blas_thread();
        app::serve();
        MPI_Finalize();
        return 0;
    }
    app::Ranks ranks(size - 1);
    if (size > 1)
        app::run_batches_with([&](const validation::Study& study, const auto& jobs, const auto& finished,
                                  const auto& halted) { ranks.run(study, jobs, finished, halted); });
    const int code = app::run_command_line(argc, argv);
    const auto failure = static_cast<ExitCode>(code);
    // A failed rank may still be waiting, or computing: nothing but an abort ends it. Codes that a finished or stopped
    // study returns are no failures of the job.
    const bool orderly = failure == ExitCode::fine || failure == ExitCode::check_failed ||
                         failure == ExitCode::inconclusive || failure == ExitCode::stopped ||
                         failure == ExitCode::too_many_failures || failure == ExitCode::usage;
    if (!orderly) MPI_Abort(MPI_COMM_WORLD, code);
    ranks.dismiss();
    MPI_Finalize();
    return code;
}
