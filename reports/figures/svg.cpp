#include "reports/figures/svg.hpp"

#include <algorithm>
#include <pugixml.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "core/runtime/error.hpp"
#include "core/text/markup.hpp"
#include "core/text/names.hpp"

namespace spiked::reports {
namespace {

constexpr std::string_view blanks = " \t\r\n";

/// The element `svg` of the parsed document. All blanks are kept, because those in labels are significant.
pugi::xml_node parse(const std::string& svg, pugi::xml_document& document) {
    const auto parsed = document.load_buffer(svg.data(), svg.size(), pugi::parse_full | pugi::parse_ws_pcdata);
    const pugi::xml_node root = document.child("svg");
    if (!parsed || !root) throw data_error("gnuplot's SVG cannot be parsed ({})", parsed.description());
    return root;
}

template <class Action>
void each_element(pugi::xml_node node, const Action& action) {
    for (pugi::xml_node child = node.first_child(); child;) {
        const pugi::xml_node next = child.next_sibling();
        if (child.type() == pugi::node_element) {
            each_element(child, action);  // children first, because the action may remove the element
            action(child);
        }
        child = next;
    }
}

bool is_blank(const pugi::xml_node& node) {
    return node.type() == pugi::node_pcdata &&
           std::string_view(node.value()).find_first_not_of(blanks) == std::string_view::npos;
}

void remove(pugi::xml_node node) { node.parent().remove_child(node); }

/// Whether an element is invisible: gnuplot's own titles, filters, the white discs under points with error bars, points
/// of size 0, and empty groups, which gnuplot writes at every change of pen.
bool is_invisible(const pugi::xml_node& node) {
    const std::string_view name = node.name();
    if (name == "title" || name == "desc" || name == "filter") return true;
    if (name == "use")
        return std::string_view(node.attribute("color").value()) == "white" ||
               std::string_view(node.attribute("transform").value()).find("scale(0.00)") != std::string_view::npos;
    return name == "g" && std::all_of(node.begin(), node.end(), is_blank);
}

/// The id that an attribute refers to, as `#id` or `url(#id)`; empty when it refers to none.
std::string reference(const pugi::xml_attribute& attribute) {
    std::string_view value = attribute.value();
    const std::string_view name = attribute.name();
    if (value.starts_with("url(#") && value.ends_with(')')) return std::string(value.substr(5, value.size() - 6));
    if ((name == "href" || name == "xlink:href") && value.starts_with('#')) return std::string(value.substr(1));
    return "";
}

/// Removes definitions of point shapes that no other element uses. It repeats, because a shape may refer to another.
void remove_unused_shapes(pugi::xml_node root) {
    for (bool removed = true; removed;) {
        removed = false;
        std::set<std::string> used;
        each_element(root, [&](pugi::xml_node node) {
            for (const auto& attribute : node.attributes()) used.insert(reference(attribute));
        });
        each_element(root, [&](pugi::xml_node node) {
            if (std::string_view(node.parent().name()) != "defs" || used.contains(node.attribute("id").value())) return;
            remove(node);
            removed = true;
        });
    }
}

void make_fit_for_page(pugi::xml_node node, const std::string& id) {
    for (auto attribute : node.attributes()) {
        const std::string_view name = attribute.name();
        const std::string value = attribute.value();
        const bool colour = name == "stroke" || name == "fill" || name == "color";
        if (colour && (value == "black" || value == "rgb(0,0,0)" || value == "rgb(  0,   0,   0)"))
            attribute.set_value("currentColor");
        if (name == "id") attribute.set_value((id + "-" + value).c_str());
        if (const std::string target = reference(attribute); !target.empty())
            attribute.set_value(
                (value.starts_with("url(") ? "url(#" + id + "-" + target + ")" : "#" + id + "-" + target).c_str());
        if (name == "xlink:href") attribute.set_name("href");
    }
}

/// Replaces the blanks between elements by one line break. Blanks in labels stay.
void remove_blank_lines(pugi::xml_node node) {
    if (std::string_view(node.name()) == "text") return;
    bool after_blank = false;
    for (pugi::xml_node child = node.first_child(); child;) {
        const pugi::xml_node next = child.next_sibling();
        const bool blank = is_blank(child);
        if (blank && after_blank) remove(child);
        if (blank && !after_blank) child.set_value("\n");
        if (!blank) remove_blank_lines(child);
        after_blank = blank;
        child = next;
    }
}

void set_titles(pugi::xml_node root, std::string_view title, std::string_view description) {
    // An enlarged map of few cells must not be smoothed.
    each_element(root, [](pugi::xml_node node) {
        if (node.attribute("preserveAspectRatio").as_string() == std::string_view("none"))
            node.append_attribute("image-rendering") = "pixelated";
    });
    pugi::xml_node element = root.prepend_child("desc");
    element.text() = xml_text(description).c_str();
    element = root.prepend_child("title");
    element.text() = xml_text(title).c_str();
}

std::string serialised(const pugi::xml_node& node) {
    std::ostringstream text;
    node.print(text, "", pugi::format_raw | pugi::format_no_declaration);
    return text.str();
}

}  // namespace

std::string titled_svg(const std::string& svg, std::string_view title, std::string_view description) {
    pugi::xml_document document;
    const pugi::xml_node root = parse(svg, document);
    each_element(root, [](pugi::xml_node node) {
        const std::string_view name = node.name();
        if (name == "title" || name == "desc") remove(node);
    });
    set_titles(root, title, description);
    return serialised(document) + "\n";
}

std::string inline_svg(const std::string& svg, const std::string& id, std::string_view title,
                       std::string_view description) {
    pugi::xml_document document;
    pugi::xml_node root = parse(svg, document);
    // The size is in the viewBox: 0 0 width height.
    const std::string box = root.attribute("viewBox").value();
    const auto sizes = split(box, ' ');
    if (sizes.size() != 4) throw data_error("gnuplot's SVG has no viewBox");
    each_element(root, [](pugi::xml_node node) {
        if (is_invisible(node)) remove(node);
    });
    remove_unused_shapes(root);
    each_element(root, [&](pugi::xml_node node) { make_fit_for_page(node, id); });
    remove_blank_lines(root);
    set_titles(root, title, description);
    root.remove_attributes();
    for (const auto& [name, value] : {std::pair<const char*, std::string>{"class", "plot"},
                                      {"width", sizes[2]},
                                      {"height", sizes[3]},
                                      {"viewBox", box},
                                      {"role", "img"}})
        root.append_attribute(name) = value.c_str();
    return serialised(root);
}

}  // namespace spiked::reports
