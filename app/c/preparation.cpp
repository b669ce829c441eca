#include "app/c/preparation.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "app/c/arrays.hpp"
#include "app/c/border.hpp"

namespace spiked::c {

sim::Preparation preparation_of(const char* center, const char* standardize) {
    sim::Preparation preparation;
    preparation.center = enum_named<sim::Lines>(words_or(center, "none"), "center");
    preparation.standardize = enum_named<sim::Lines>(words_or(standardize, "none"), "standardize");
    if (preparation.standardize == sim::Lines::both)
        throw usage_error("standardize is both (rows or columns are divided, each undoes the other): choose one");
    preparation.check();
    return preparation;
}

void write_notes(char* to, std::int64_t capacity, const std::vector<std::string>& notes) {
    write_cut(to, static_cast<std::size_t>(std::max<std::int64_t>(capacity, 0)),
              fmt::format("{}", fmt::join(notes, "\n")));
}

}  // namespace spiked::c

using namespace spiked;

extern "C" int spiked_prepare(const spiked_matrix* data, const char* center, const char* standardize,
                              const spiked_matrix* prepared, char* notes, int64_t notes_capacity) {
    return c::computed([&] {
        const sim::Preparation preparation = c::preparation_of(center, standardize);
        arma::mat read = c::read_matrix(data, "data");
        const spiked_matrix& to = c::required(prepared, "prepared");
        c::check_output(to, data->rows, data->cols, "prepared");
        const sim::NotedMatrix ready = sim::prepared(std::move(read), preparation);
        c::write_matrix(to, ready.matrix);
        c::write_notes(notes, notes_capacity, ready.notes);
    });
}
