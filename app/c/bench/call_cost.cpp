// The calls that tools/python-call-cost compares with those of the Python package, as a program in C++ makes them. The
// script loads this file as a library, so that both are timed in turn in one process.
#include <armadillo>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "estimators/compressors/compressor.hpp"
#include "estimators/compressors/relative_error.hpp"
#include "estimators/svd/analysed_block.hpp"
#include "sim/random/address.hpp"

namespace {

using namespace spiked;
using estimators::AnalysedBlock;

/// A square matrix of the caller, column after column, or row after row as NumPy has it.
struct Square {
    const double* entries;
    arma::uword side;
    bool in_rows;

    [[nodiscard]] arma::mat read() const {
        const arma::mat given(const_cast<double*>(entries), side, side, false, true);
        return in_rows ? arma::mat(given.t()) : given;
    }
    /// A result in the order of this matrix.
    [[nodiscard]] arma::mat ordered(arma::mat result) const { return in_rows ? arma::mat(result.t()) : result; }
};

/// Microseconds of the work, and of what its memory takes to be released.
template <class Work>
double time_of(const Work& work) {
    const auto started = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - started).count();
}

volatile double last_entry;

void use(const arma::mat& result) { last_entry = result(0, 0); }

}  // namespace

/// A codec at 2 bits, and its code of the matrix.
struct call_cost_codec {
    estimators::Compressor compressor;
    std::vector<std::uint8_t> code = {};
};

extern "C" {

/// Never released: the process ends soon.
call_cost_codec* call_cost_make(const char* method, const double* matrix, int64_t side) {
    estimators::QuantizerOptions options;
    options.seed = stream::StudySeed::parse("0x5eed");
    const auto size = static_cast<arma::uword>(side);
    auto* const made = new call_cost_codec{{estimators::parse_method(method), size, 2.0, options}};
    AnalysedBlock block(Square{matrix, size, true}.read());
    made->code = made->compressor.encode(block).encoded.bytes;
    return made;
}

/// The code, so that the script can compare it with that of Python.
const uint8_t* call_cost_code(const call_cost_codec* codec, int64_t* length) {
    *length = static_cast<int64_t>(codec->code.size());
    return codec->code.data();
}

double call_cost_encode(call_cost_codec* codec, const double* matrix, int64_t side, int in_rows) {
    const Square square{matrix, static_cast<arma::uword>(side), in_rows != 0};
    return time_of([&] {
        AnalysedBlock block(square.read());
        codec->code = codec->compressor.encode(block).encoded.bytes;
    });
}

double call_cost_decode(const call_cost_codec* codec, const double*, int64_t side, int in_rows) {
    const Square square{nullptr, static_cast<arma::uword>(side), in_rows != 0};
    return time_of([&] { use(square.ordered(codec->compressor.decode(codec->code, square.side))); });
}

double call_cost_roundtrip(const call_cost_codec* codec, const double* matrix, int64_t side, int in_rows) {
    const Square square{matrix, static_cast<arma::uword>(side), in_rows != 0};
    return time_of([&] {
        AnalysedBlock block(square.read());
        const auto coded = codec->compressor.encode(block);
        arma::mat decoded = codec->compressor.decode(coded.encoded.bytes, square.side);
        last_entry = estimators::relative_l2(block.block(), decoded);
        use(square.ordered(std::move(decoded)));
    });
}

double call_cost_denoise(const call_cost_codec*, const double* matrix, int64_t side, int in_rows) {
    static const estimators::SpectralMethod method = estimators::parse_estimator("eoptshrink");
    const Square square{matrix, static_cast<arma::uword>(side), in_rows != 0};
    return time_of([&] {
        AnalysedBlock block(square.read());
        const estimators::Shrinkage found = method.estimate(block);
        use(square.ordered(block.denoised(found.shrunk)));
    });
}

}  // extern "C"
