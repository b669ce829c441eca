#pragma once
#include "app/command.hpp"
#include "validation/kv_measurement.hpp"

namespace spiked::app {

/// The options of every command that measures blocks of dumps, and the part of a plan that they say.
[[nodiscard]] const std::vector<Option>& dump_options();
[[nodiscard]] validation::KvPlan read_dump_plan(const Arguments& arguments);

/// Of the numbers in a dump that is written.
[[nodiscard]] Option dtype_option();
[[nodiscard]] sim::DType read_dtype(const Arguments& arguments);

}  // namespace spiked::app
