// `spiked-mpi`: the command `spiked` on many machines. For `run` and `validate`, rank 0 reads the study, distributes
// batches, writes the store and its pages; the other ranks compute. The results do not depend on the number of ranks.
#include <fmt/format.h>
#include <mpi.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/build_info.hpp"
#include "app/cli/entry.hpp"
#include "app/studies/study_run.hpp"
#include "core/runtime/error.hpp"
#include "validation/engine/batch_bytes.hpp"

namespace spiked::app {
namespace {

using validation::Batch;
using validation::BatchJob;

enum Tag : int { tag_study = 1, tag_ready, tag_job, tag_batch, tag_given_up, tag_problem, tag_stop, tag_done };

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

bool waiting(int from, int tag) {
    int found = 0;
    MPI_Iprobe(from, tag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    return found != 0;
}

/// A job and, of a cell that the study has grown, its replicates and parameters, which other ranks do not know.
std::string job_bytes(const BatchJob& job, const validation::GrownCells& grown) {
    std::string bytes(reinterpret_cast<const char*>(&job), sizeof job);
    if (const auto cell = grown.find(job.cell); cell != grown.end()) {
        bytes.append(reinterpret_cast<const char*>(&cell->second.replicates), sizeof cell->second.replicates);
        bytes += cell->second.params;
    }
    return bytes;
}

/// The job, of which the experiment then knows the cell.
BatchJob read_job(const std::string& bytes, const validation::Experiment& experiment) {
    BatchJob job{};
    std::memcpy(&job, bytes.data(), sizeof job);
    if (bytes.size() > sizeof job) {
        validation::GrownCell cell;
        std::memcpy(&cell.replicates, bytes.data() + sizeof job, sizeof cell.replicates);
        cell.params = bytes.substr(sizeof job + sizeof cell.replicates);
        experiment.adopt(job.cell, cell);
    }
    return job;
}

/// Rank 0: sends jobs to idle ranks until no job is left or the run is asked to stop.
class Ranks {
public:
    explicit Ranks(int workers) : workers_(workers) {}

    void run(const Json& recipe, const std::vector<BatchJob>& jobs, const validation::GrownCells& grown,
             const std::function<void(Batch)>& finished, const std::function<bool()>& halted) {
        send_study(recipe);
        std::size_t next = 0;
        const auto give = [&](int rank) {
            send(job_bytes(jobs[next++], grown), rank, tag_job);
            busy_.insert(rank);
        };
        for (int rank = 1; rank <= workers_ && next < jobs.size() && !halted(); ++rank) give(rank);
        bool stopping = false;
        while (!busy_.empty()) {
            // A signal does not end a wait for messages, so rank 0 polls for both in turn.
            if (!waiting(MPI_ANY_SOURCE, MPI_ANY_TAG)) {
                if (!stopping && halted()) {
                    stopping = true;
                    for (const int rank : busy_) send("", rank, tag_stop);
                }
                std::this_thread::sleep_for(std::chrono::microseconds(200));
                continue;
            }
            const Message message = take_answer();
            if (message.tag == tag_batch) finished(validation::batch_from_bytes(message.bytes));
            if (next < jobs.size() && !stopping && !halted()) give(message.from);
        }
    }
    /// Whether every worker waits for the next message, so that it can be dismissed.
    [[nodiscard]] bool idle() const { return busy_.empty(); }
    void dismiss() {
        for (int rank = 1; rank <= workers_; ++rank) send("", rank, tag_done);
    }

private:
    /// Sends the study to every rank, once, and waits until all have read it: no job is sent before.
    void send_study(const Json& recipe) {
        if (study_sent_) return;
        study_sent_ = true;
        for (int rank = 1; rank <= workers_; ++rank) {
            send(recipe.text(), rank, tag_study);
            busy_.insert(rank);
        }
        while (!busy_.empty()) (void)take_answer();
    }
    /// Receives the next answer of any rank. Throws the error of that rank, which then stays marked as busy.
    Message take_answer() {
        Message message = receive(MPI_ANY_SOURCE);
        if (message.tag == tag_problem)
            throw Error(static_cast<ErrorKind>(message.bytes.front()),
                        fmt::format("rank {}: {}", message.from, message.bytes.substr(1)));
        busy_.erase(message.from);
        return message;
    }

    int workers_;
    bool study_sent_ = false;
    std::set<int> busy_;
};

/// Every other rank: computes the jobs it is sent. Errors are sent to rank 0, which ends the MPI job with their cause.
void serve() {
    // Only rank 0 reacts to signals; mpirun forwards its own to every rank.
    for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) std::signal(signal, SIG_IGN);
    std::optional<validation::Experiment> experiment;
    const auto stopped = [] { return waiting(0, tag_stop); };
    while (true) {
        const Message message = receive(0);
        ErrorKind kind = ErrorKind::internal;
        std::string problem;
        try {
            if (message.tag == tag_done) return;
            if (message.tag == tag_study) {
                experiment = experiment_of(Json::parse(message.bytes, "the study of rank 0", 64));
                send("", 0, tag_ready);
            } else if (message.tag == tag_job && experiment) {
                const BatchJob job = read_job(message.bytes, *experiment);
                if (const auto batch = validation::run_batch(*experiment, job, stopped))
                    send(batch_bytes(*batch), 0, tag_batch);
                else
                    send("", 0, tag_given_up);
            }
            continue;
        } catch (const Error& error) {
            kind = error.kind();
            problem = error.what();
        } catch (const std::bad_alloc&) {
            kind = ErrorKind::memory;
            problem = "out of memory: give fewer ranks to a machine, or it more memory";
        } catch (const std::exception& error) {
            problem = error.what();
        }
        send(static_cast<char>(kind) + problem, 0, tag_problem);
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
        app::run_batches_with([&](const Json& recipe, const auto& jobs, const auto& grown, const auto& finished,
                                  const auto& halted) { ranks.run(recipe, jobs, grown, finished, halted); });
    const int code = app::run_command_line(argc, argv);
    // A rank that still computes or has failed does not wait for a message, so only an abort ends it.
    if (!ranks.idle()) MPI_Abort(MPI_COMM_WORLD, code);
    ranks.dismiss();
    MPI_Finalize();
    return code;
}
