#include "theory/laws/bench/theory_bench.hpp"

#include "theory/laws/bulk_distribution.hpp"
#include "theory/laws/separable_law.hpp"

namespace spiked::theory {

std::vector<Job> benchmark_jobs() {
    return {{"solve-1024",
             [row = toeplitz_ar1_spectrum(0.5, 1024), column = exponential_spectrum(2.0, 1024)] {
                 const SeparableLaw law(row, column, AspectRatio(0.5));
                 double sum = law.bulk_edge().value + law.detection_threshold().value;
                 for (const double ratio : {1.1, 1.5, 2.0, 4.0, 16.0})
                     sum += law.spike({ratio * law.detection_threshold().value}).overlap_left.value;
                 use_result(sum);
             }},
            {"density-400", [row = toeplitz_ar1_spectrum(0.5, 64), column = exponential_spectrum(2.0, 64)] {
                 const SeparableLaw law(row, column, AspectRatio(0.5));
                 use_result(BulkDistribution(law).curve(400)[200].density);
             }}};
}

}  // namespace spiked::theory
