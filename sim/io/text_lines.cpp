#include "sim/io/text_lines.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/runtime/error.hpp"
#include "sim/io/npz.hpp"

namespace spiked::sim {
namespace {

constexpr std::size_t text_chunk = 1 << 20;

/// Cuts text that arrives in chunks into lines.
class LineCutter {
public:
    LineCutter(const std::string& path, const std::function<void(std::string_view)>& use) : path_(path), use_(use) {}

    void add(std::string_view chunk) {
        if (chunk.empty()) return;
        std::size_t searched = pending_.size();
        pending_ += chunk;
        if (!begun_) {
            begun_ = true;
            begin();
            searched = 0;
        }
        std::size_t from = 0;
        for (std::size_t end = 0; (end = pending_.find(end_, std::max(from, searched))) != std::string::npos;
             from = end + 1)
            line(std::string_view(pending_).substr(from, end - from));
        pending_.erase(0, from);
    }
    void finish() {
        if (!pending_.empty()) line(pending_);
    }

private:
    /// Reads from the first chunk what holds for the whole text.
    void begin() {
        const std::string_view text = pending_;
        if (const auto encoding = wide_encoding(text); !encoding.empty())
            throw input_error(
                "{0}: text in {1} (UTF-8 is read): convert it, for example with: iconv -f {1} -t UTF-8 FILE > NEW",
                path_, encoding);
        if (text.find('\n') == text.npos && text.find('\r') < text.size() - 1) end_ = '\r';
        if (text.starts_with("\xEF\xBB\xBF")) pending_.erase(0, 3);
    }
    void line(std::string_view text) {
        ++number_;
        if (text.ends_with('\r')) text.remove_suffix(1);
        if (text.find('\0') != std::string_view::npos)
            throw input_error("{}:{}: not a text file (it holds a zero byte): give a table of numbers in UTF-8", path_,
                              number_);
        use_(text);
    }

    const std::string& path_;
    const std::function<void(std::string_view)>& use_;
    std::string pending_;
    std::size_t number_ = 0;
    bool begun_ = false;
    char end_ = '\n';
};

class Inflater {
public:
    explicit Inflater(const std::string& path) : path_(path) {
        constexpr int gzip_only = 16 + MAX_WBITS;
        if (inflateInit2(&stream_, gzip_only) != Z_OK) throw input_error("{}: zlib cannot be used", path_);
    }
    ~Inflater() { inflateEnd(&stream_); }
    Inflater(const Inflater&) = delete;
    Inflater& operator=(const Inflater&) = delete;

    /// Unpacks the bytes, which may be several members one after the other.
    template <class Use>
    void add(std::span<std::byte> packed, const Use& use) {
        stream_.next_in = reinterpret_cast<Bytef*>(packed.data());
        stream_.avail_in = static_cast<uInt>(packed.size());
        do {
            if (ended_ && stream_.avail_in > 0) {
                inflateReset(&stream_);
                ended_ = false;
            }
            stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
            stream_.avail_out = static_cast<uInt>(out_.size());
            const int status = inflate(&stream_, Z_NO_FLUSH);
            if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
                throw input_error("{}: damaged (gzip: {}): fetch or pack it again", path_,
                                  stream_.msg != nullptr ? stream_.msg : "its data end in another place");
            use(std::string_view(out_.data(), out_.size() - stream_.avail_out));
            ended_ = status == Z_STREAM_END;
        } while (stream_.avail_in > 0 || stream_.avail_out == 0);
    }
    void finish() const {
        if (!ended_) throw input_error("{}: ends early (gzip): fetch or pack it again", path_);
    }

private:
    const std::string& path_;
    z_stream stream_{};
    std::vector<char> out_ = std::vector<char>(text_chunk);
    bool ended_ = false;
};

bool is_packed_by_gzip(const ByteFile& file) {
    std::array<std::byte, 2> head{};
    if (file.size() < head.size()) return false;
    file.read(0, head);
    return head == std::array{std::byte{0x1F}, std::byte{0x8B}};
}

}  // namespace

std::string_view wide_encoding(std::string_view head) {
    const auto begins = [&](std::string_view mark) { return head.starts_with(mark); };
    if (begins({"\xFF\xFE\0\0", 4}) || begins({"\0\0\xFE\xFF", 4})) return "UTF-32";
    if (begins("\xFF\xFE") || begins("\xFE\xFF")) return "UTF-16";
    // Without a mark: each of the first characters is one of ASCII.
    const auto is_ascii = [&](std::size_t width, std::size_t place) {
        constexpr std::size_t looked_at = 8;
        if (head.size() < 2 * width) return false;
        for (std::size_t i = 0; i < std::min(head.size() / width, looked_at) * width; ++i) {
            const auto byte = static_cast<unsigned char>(head[i]);
            const bool printed = (byte >= ' ' && byte < 0x7F) || byte == '\t' || byte == '\n' || byte == '\r';
            if (i % width == place ? !printed : byte != 0) return false;
        }
        return true;
    };
    if (is_ascii(4, 0)) return "UTF-32LE";
    if (is_ascii(4, 3)) return "UTF-32BE";
    if (is_ascii(2, 0)) return "UTF-16LE";
    return is_ascii(2, 1) ? "UTF-16BE" : "";
}

void each_line(const ByteFile& file, const std::function<void(std::string_view)>& use) {
    constexpr ExpansionLimit limit{.always = 8 << 20, .times = 30};
    LineCutter lines(file.path(), use);
    std::optional<Inflater> inflater;
    if (is_packed_by_gzip(file)) inflater.emplace(file.path());
    std::uint64_t unpacked = 0;
    std::vector<std::byte> bytes(std::min<std::uint64_t>(text_chunk, file.size()));
    for (std::uint64_t offset = 0; offset < file.size();) {
        const auto chunk = std::span(bytes).first(std::min<std::uint64_t>(bytes.size(), file.size() - offset));
        file.read(offset, chunk);
        offset += chunk.size();
        if (inflater)
            inflater->add(chunk, [&](std::string_view text) {
                unpacked += text.size();
                reject_expansion(unpacked, file.size(), limit, file.path());
                lines.add(text);
            });
        else
            lines.add(std::string_view(reinterpret_cast<const char*>(chunk.data()), chunk.size()));
    }
    if (inflater) inflater->finish();
    lines.finish();
}

}  // namespace spiked::sim
