#pragma once
#include "validation/statistics/paired.hpp"
#include "validation/statistics/statistics.hpp"

namespace spiked::validation {

/// How many standard errors the limits of a mean at 1 - alpha are away from it, by Student's law; NaN where `degrees`
/// is NaN.
[[nodiscard]] double limits_in_errors(double degrees, double alpha = 0.05);

/// Interval for a probability from blocks in clusters, whose blocks may depend on each other: `parts` holds the number
/// of blocks of each cluster and how many of them have the property. The limits are those of Clopper and Pearson for an
/// effective number of blocks: the one that gives the clustered error (CR2), reduced for the degrees of freedom of that
/// error (Korn and Graubard 1998), between that of a correlation of 1 within clusters and the real one. For the limit
/// that is nearer to 1/2 it is also at most that of a correlation of 0.5, because few blocks with the property, or few
/// without it, say little about their correlation, and that of 1 where every cluster has all or none.
///
/// Nominal, not exact. Measured at alpha = .05 on beta-binomial counts of probability .05: with 8 clusters of 16 blocks
/// at correlations 0, .1 and .3 the lower limit is above it in 0.7, 0.6 and 0.3 % (2.5 % allowed; the binomial interval
/// that takes blocks for independent: 1.2, 7.4 and 15 %) and the upper one below it in 0 % (1, 7 and 23 %); with 4 of 8
/// in 0.8, 0.3 and 0.1 % and in 0 %. For probabilities from .01 to .5, 2 to 100 clusters of up to 64 blocks and
/// correlations from 0 to .99 the lower limit missed in at most 2.4 %, with three or four clusters of 64 in 3.0 %; the
/// upper one in at most 2.9 %, and with 50 clusters of 32 or 64 at correlations from .8 to .9 in 3.4 and 4.0 %.
///
/// With a single cluster it is the binomial interval, exact if its blocks are independent, and the error is NaN.
[[nodiscard]] Interval clustered_fraction(const Parts& parts, double alpha);

}  // namespace spiked::validation
