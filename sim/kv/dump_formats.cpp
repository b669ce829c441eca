#include "sim/kv/dump_formats.hpp"

#include "sim/kv/dump_completeness.hpp"

namespace spiked::sim {

const Registry<DumpFormat>& dump_formats() {
    static const std::vector<std::string> pairs = {
        "past_key_values.{layer}.{side}",
        "present.{layer}.{side}",
        "{side}_cache.{layer}",
        "layers.{layer}.{side}",
        "{layer}.{side}",
        "{side}.{layer}",
        "{side}_{layer}",
        "layer_{layer}_{side}",
    };
    static const std::vector<std::string> paged = {
        "kv_cache",
        "kv_cache.{layer}",
        "kv_caches.{layer}",
        "model.layers.{layer}.self_attn.attn",
        "model.layers.{layer}.self_attn",
        "layers.{layer}.kv_cache",
        "layers.{layer}.kv",
        "layers.{layer}",
    };
    static const Registry<DumpFormat> formats(
        "format",
        {
            {"hf", "transformers, tuples or a DynamicCache saved layer by layer", pairs, {"batch,head,token,dim"}},
            {"bloom", "transformers, tuples of Bloom", pairs, {"key=head,dim,token value=head,token,dim"}},
            {"vllm",
             "vLLM, a paged cache or a file of its example connector",
             paged,
             {"side,block,token,head,dim", "block,side,token,head,dim", "side,token,head,dim", "token,side,head,dim"},
             "",
             ", side,token,hidden for files of the example connector"},
            {"vllm-hnd",
             "vLLM and FlashInfer, a paged cache whose pages hold head after head (HND)",
             paged,
             {"side,block,head,token,dim", "block,side,head,token,dim"}},
            {"lmcache",
             "LMCache, chunks of tokens of all layers or of one",
             {"tensor_bytes", "chunk.{chunk}", "chunks.{chunk}", "kv_cache", "kv", "layers.{layer}"},
             {"side,layer,token,hidden", "side,layer,token,head,dim", "layer,side,token,head,dim", "side,token,hidden",
              "token,side,hidden"}},
            {"mlx",
             "mlx-lm, save_prompt_cache",
             {"{layer}.{side}", "layers.{layer}.{side}"},
             {"batch,head,token,dim"},
             "1.",
             "",
             other_cache_of_mlx},
            {"stacked",
             "all layers in one tensor a side",
             {"{side}", "{side}_cache", "past_{side}"},
             {"layer,batch,head,token,dim", "layer,head,token,dim"}},
        });
    return formats;
}

}  // namespace spiked::sim
