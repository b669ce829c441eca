#pragma once
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

struct GearOptions {
    GroupAxis axis = GroupAxis::value;
    std::size_t group = 64;  ///< entries that share a minimum and a scale
    std::size_t rank = 4;    ///< largest rank of the low-rank part
    double outliers = 0.02;  ///< fraction of the entries of a vector that are stored in fp16
    ScalarOptions scales;
};

/// GEAR: min-max groups of the block without its outliers, outliers in fp16, and a low-rank part of the error of the
/// groups.
///
/// Source: Kang et al., "GEAR", 2024, with KIVI's groups as backbone. Of each vector (a channel on axis key, a token on
/// axis value) the fraction `outliers` is stored separately (vector_outliers.hpp) and replaced by the mean of the
/// others before kivi codes the block; of the remaining error, `rank` singular components are stored (factor_codec.hpp,
/// vectors in fp16). Stored: outliers, low-rank part, and the data of kivi. Bits B + 2 f / G + outliers (16 + log2 m) +
/// 16 rank (n + d) / (n d). The source finds the components by power iteration and rounds 2 % outliers up; here they
/// are exact. Throws the errors of kivi.
[[nodiscard]] RowQuantizer gear(std::size_t dimension, unsigned bits, const GearOptions& options);

}  // namespace spiked::estimators
