#pragma once
#include "estimators/transforms/transform.hpp"

namespace spiked::estimators {

/// The variance of an entry as a function of its mean m: constant + linear m + square m^2. Poisson counts have
/// (0, 1, 0), negative binomial ones with variance m + c m^2 (0, 1, c), binomial ones of N trials (0, 1, -1/N), gamma
/// laws of shape k (0, 0, 1/k), counts with read noise (a, b, 0).
struct VarianceFunction {
    double constant = 0.0;
    double linear = 1.0;
    double square = 0.0;  ///< above -1
};

/// White coordinates of entries with independent errors whose variance depends on their mean, such as counts. For the
/// observed y, V = (constant + linear y + square y^2) / (1 + square) has the entry's variance as its expectation. Rows
/// and columns are scaled until every row and every column of V has the mean 1. Noise with such variances has the
/// singular values of white noise, whatever the profile (theory/laws/profile_law), so a mean matrix of any rank may
/// have any rank-one or other profile of variances.
///
/// Source: Landa, Zhang and Kluger, "Biwhitening reveals the rank of a count matrix", SIAM Journal on Mathematics of
/// Data Science 4, 2022; scaling by Sinkhorn and Knopp 1967. Ours: V has a tenth of the matrix of rank one with
/// its sums of rows and columns, so that the scaling exists for any sparse counts. Throws input_error where V would be
/// negative. A block without variance in some row or column is left unchanged, with a note. Independent of scale if
/// the function is. Cost: 20 to 200 products of V with a vector, without a decomposition.
[[nodiscard]] WhiteCoordinates biwhiten(AnalysedBlock& block, const VarianceFunction& variance);

/// The same with a function linear m + square m^2 that is found in the block: the ratio of the two with which the
/// singular values are closest to white noise (Kolmogorov-Smirnov distance to the Marchenko-Pastur law at the level of
/// the median), then their size by that level. No square is taken where it makes the distance smaller by less than two
/// of the p eigenvalues, 2/p. The note says which function was found.
///
/// Source: Landa, Zhang and Kluger 2022, and Stanley, Yang, Li, Lindenbaum, Kluger and Landa (biPCA), 2025. Cost: 30 of
/// these scalings and as many computations of singular values.
[[nodiscard]] WhiteCoordinates biwhiten_fitted(AnalysedBlock& block);

}  // namespace spiked::estimators
