#pragma once

namespace spiked::reports {

/// The style sheet of a report: light, dark and print.
extern const char* const page_style;

}  // namespace spiked::reports
