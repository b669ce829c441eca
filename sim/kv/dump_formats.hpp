#pragma once
#include <string>
#include <vector>

#include "core/text/registry.hpp"
#include "sim/io/safetensors.hpp"
#include "sim/io/tensor_container.hpp"

namespace spiked::sim {

/// How a program writes its cache: the names of the tensors and the meaning of their axes.
struct DumpFormat {
    std::string name;
    std::string writer;                 ///< the program, as a phrase
    std::vector<std::string> patterns;  ///< of tensor names; the first that some tensor matches is used
    /// Texts for parse_side_layouts; the only one that fits a tensor's shape is used.
    std::vector<std::string> layouts;
    std::string metadata_prefix = {};  ///< in front of the keys that users give to the program
    std::string advice = {};           ///< behind the message that no layout fits
    /// Why a tensor of this layer is no cache of all tokens; empty where it is one. Null: every tensor is one.
    std::string (*unfit)(const Metadata& metadata, std::size_t layer, const StoredTensor& held) = nullptr;
};

/// Every format that is known by name.
[[nodiscard]] const Registry<DumpFormat>& dump_formats();

/// The line of Python that converts the pages of vLLM 0.x in which a layer is one tensor of three axes; its key and
/// value are those of tensors in pairs, flattened. The name of a layer holds one number.
inline constexpr const char* from_whole_pages =
    "python3 -c \"from safetensors.torch import load_file,save_file; H,D=8,128; save_file({'layers.'+''.join(filter("
    "str.isdigit,n))+s: p.contiguous() for n,c in load_file('FILE').items() for s,p in "
    "(('.key',c[0].view(len(c[0]),H,D*c.element_size()//16,-1,16//c.element_size()).permute(0,3,1,2,4).flatten(-2)),"
    "('.value',c[1].view(len(c[1]),H,D,-1).permute(0,3,1,2)))},'x.safetensors',{'layout':'block,token,head,dim'})\" "
    "with the model's own heads H and channels D";

}  // namespace spiked::sim
