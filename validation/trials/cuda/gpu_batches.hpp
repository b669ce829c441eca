#pragma once
#include "validation/trials/cuda/device_passes.hpp"

/// The functions that nvcc compiles for a GPU. In a build without nvcc each of them throws precondition_error, except
/// gpu_library_problem.
namespace spiked::validation::cuda {

[[nodiscard]] std::unique_ptr<TrialDevice> gpu_trials(int number, std::size_t memory);
[[nodiscard]] std::unique_ptr<DevicePass> gpu_pass(int number, std::size_t memory, const BlocksToDecompose& blocks,
                                                   std::size_t count, DecompositionPart part);
[[nodiscard]] std::unique_ptr<DevicePass> gpu_pass(int number, std::size_t memory, const RowCoding& coding,
                                                   std::size_t count, const FillBlock& fill, CodingPart part);
/// Why NVIDIA's libraries cannot be used; empty if they can.
[[nodiscard]] std::string gpu_library_problem();
[[nodiscard]] std::unique_ptr<DevicePass> gpu_library_pass(int number, const BlocksToDecompose& blocks,
                                                           std::size_t count, LibraryRoute route);

}  // namespace spiked::validation::cuda
