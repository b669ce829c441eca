#include "app/c/preparation.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"

namespace spiked::c {

sim::Preparation preparation_of(const char* center, const char* standardize, const char* missing) {
    sim::Preparation preparation;
    if (center == nullptr && standardize == nullptr && missing == nullptr) return preparation;
    preparation.center = enum_named<sim::Lines>(words_or(center, "none"), "center");
    preparation.standardize = enum_named<sim::Lines>(words_or(standardize, "none"), "standardize");
    preparation.missing = enum_named<sim::Missing>(words_or(missing, "none"), "missing");
    if (preparation.standardize == sim::Lines::both)
        throw usage_error("standardize is both (rows or columns are divided, each undoes the other): choose one");
    preparation.check();
    return preparation;
}

arma::mat read_data(const spiked_matrix* data, const sim::Preparation& preparation) {
    return read_matrix(data, "data", preparation.missing == sim::Missing::none ? Nans::offered : Nans::kept);
}

void write_notes(char* to, std::int64_t capacity, const std::vector<std::string>& notes) {
    write_cut(to, static_cast<std::size_t>(std::max<std::int64_t>(capacity, 0)),
              fmt::format("{}", fmt::join(notes, "\n")));
}

}  // namespace spiked::c

using namespace spiked;

extern "C" {

int spiked_prepare(const spiked_matrix* data, const char* center, const char* standardize,
                   const spiked_matrix* prepared, char* notes, int64_t notes_capacity) {
    const int status = c::guarded([&] { (void)c::required(prepared, "prepared"); });
    if (status != SPIKED_OK) return status;
    return spiked_prepare_missing(data, nullptr, center, standardize, prepared, nullptr, nullptr, notes,
                                  notes_capacity);
}

int spiked_prepare_missing(const spiked_matrix* data, const char* missing, const char* center, const char* standardize,
                           const spiked_matrix* prepared, const spiked_matrix* seen, double* share_seen, char* notes,
                           int64_t notes_capacity) {
    return c::computed([&] {
        const sim::Preparation preparation = c::preparation_of(center, standardize, missing);
        arma::mat read = c::read_data(data, preparation);
        const auto check = [&](const spiked_matrix* to, const char* name) {
            if (to != nullptr) c::check_output(*to, data->rows, data->cols, name);
        };
        check(prepared, "prepared");
        check(seen, "seen");
        const sim::PreparedMatrix ready = sim::prepared(std::move(read), preparation);
        if (prepared != nullptr) c::write_matrix(*prepared, ready.matrix);
        if (seen != nullptr) c::write_matrix(*seen, ready.entries.unweighted(ready.matrix));
        if (share_seen != nullptr) *share_seen = ready.entries.share;
        c::write_notes(notes, notes_capacity, ready.notes);
    });
}

}  // extern "C"
