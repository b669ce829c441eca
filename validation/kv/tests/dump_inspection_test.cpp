#include "validation/kv/dump_inspection.hpp"

#include <gtest/gtest.h>

#include "core/files/tests/scratch.hpp"
#include "sim/io/safetensors.hpp"

namespace spiked::validation {
namespace {

std::vector<std::string> keys_of(const std::vector<WantedMetadata>& metadata) {
    std::vector<std::string> keys;
    for (const auto& one : metadata) keys.emplace_back(one.key);
    return keys;
}

TEST(DumpInspection, ACompleteDumpLacksNothing) {
    const DumpInspection found =
        inspect_dump(SPIKED_SOURCE_DIR "/sim/kv/tests/data/rope-lm-cut.safetensors", sim::DumpOptions{});
    ASSERT_TRUE(found.dump);
    EXPECT_EQ(found.dump->layout().text(), "head,token,dim");
    EXPECT_EQ(keys_of(found.missing), std::vector<std::string>{});
    EXPECT_TRUE(found.unusable.empty());
    EXPECT_FALSE(found.possible_layouts.empty());
}

TEST(DumpInspection, AFileWithoutMetadataLacksAllOfThem) {
    const sim::ScratchFolder folder;
    // A header of safetensors: one tensor of 2 x 3 x 4 numbers of 16 bits.
    const std::string header = R"({"layers.0.key":{"dtype":"F16","shape":[2,3,4],"data_offsets":[0,48]}})";
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size());
    bytes += header + std::string(48, '\0');
    const std::string path = folder.write("plain.safetensors", bytes);
    const DumpInspection found = inspect_dump(path, {});
    EXPECT_FALSE(found.dump);
    EXPECT_EQ(found.missing.size(), wanted_metadata().size());
    EXPECT_FALSE(found.possible_layouts.empty());
    EXPECT_EQ(found.file->tensors().size(), 1U);
    sim::DumpOptions named;
    named.layout = "head,token,dim";
    const DumpInspection with_layout = inspect_dump(path, named);
    ASSERT_TRUE(with_layout.dump);
    EXPECT_EQ(with_layout.dump->tensors().front().tokens, 3U);
    EXPECT_EQ(keys_of(with_layout.missing).front(), "layout");
}

TEST(DumpInspection, PagesWithKeysInChunksSayHowToJoinThem) {
    const sim::ScratchFolder folder;
    const std::string path = folder.path("pages.safetensors");
    for (const std::string name : {"layers.0.{}", "{}_cache", "kv_caches.0.{}"}) {
        std::vector<sim::TensorSource> pages;
        for (const bool key : {true, false}) {
            std::string one = name;
            one.replace(one.find("{}"), 2, key ? "key" : "value");
            const std::vector<std::size_t> shape =
                key ? std::vector<std::size_t>{2, 1, 2, 4, 8} : std::vector<std::size_t>{2, 1, 16, 4};
            pages.push_back(sim::tensor_of(one, sim::DType::f16, shape, std::vector<double>(128, 0.5)));
        }
        sim::write_safetensors(path, {}, pages);
        const DumpInspection found = inspect_dump(path, {});
        ASSERT_EQ(found.unusable.size(), 1U) << name;
        EXPECT_NE(found.unusable.front().find("k.permute(0, 3, 1, 2, 4).flatten(-2)"), std::string::npos);
        EXPECT_TRUE(found.notes.empty()) << "no format reads them: " << found.notes.front();
    }
}

}  // namespace
}  // namespace spiked::validation
