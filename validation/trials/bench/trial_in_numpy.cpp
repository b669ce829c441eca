#include "validation/trials/bench/trial_in_numpy.hpp"

#include <fmt/format.h>

#include <cmath>

#include "validation/trials/bench/trial_in_numpy_program.hpp"

namespace spiked::validation {
namespace {

Json header(const TrialSetup& setup) {
    return Json::object({{"rows", setup.model.row.size()},
                         {"columns", setup.model.column.size()},
                         {"rank", setup.model.strengths.size()},
                         {"levels", setup.codebook.levels},
                         {"thresholds", setup.codebook.thresholds}});
}

void send_matrices(NumpyPeer& peer, const TrialSetup& setup) {
    const auto send_matrix = [&peer](const arma::mat& matrix) {
        const auto entries = arma::conv_to<arma::fmat>::from(matrix);
        peer.send(entries.memptr(), entries.n_elem * sizeof(float));
    };
    const sim::SpikedModel& model = setup.model;
    const std::size_t rows = model.row.size();
    const std::size_t columns = model.column.size();
    arma::mat left = setup.left;
    for (arma::uword i = 0; i < left.n_cols; ++i) left.col(i) *= model.strengths[i].value;
    send_matrix(model.row.root_times(arma::mat(rows, rows, arma::fill::eye)) / std::sqrt(static_cast<double>(columns)));
    send_matrix(model.column.root_times(arma::mat(columns, columns, arma::fill::eye)));
    send_matrix(left);
    send_matrix(setup.right);
    send_matrix(setup.rotation);
}

}  // namespace

TrialInNumpy::TrialInNumpy(const TrialSetup& setup)
    : peer_(trial_numpy_program, header(setup), [&setup](NumpyPeer& peer) { send_matrices(peer, setup); }) {}

double TrialInNumpy::microseconds(std::string_view decomposition, std::size_t trials) {
    peer_.say(fmt::format("time {} {}", decomposition, trials));
    return NumpyPeer::number(peer_.answer(), "microseconds");
}

TrialOutcome TrialInNumpy::run(std::string_view decomposition, const arma::fmat& white) {
    peer_.say(fmt::format("run {}", decomposition));
    peer_.send(white.memptr(), white.n_elem * sizeof(float));
    const Json found = peer_.answer();
    TrialOutcome outcome;
    outcome.rank = static_cast<std::size_t>(NumpyPeer::number(found, "rank"));
    outcome.shrunk = NumpyPeer::numbers(found, "shrunk");
    outcome.mean_squared_error = NumpyPeer::number(found, "mean_squared_error");
    return outcome;
}

}  // namespace spiked::validation
