/// @file
/// The shop's HTTP service.
#pragma once

#include "flash_sale/orders.hpp"
#include "flash_sale/sale.hpp"
#include "flash_sale/settings.hpp"

#include <string>

namespace flash {

/// The figures of the page, in JSON. Pieces left, orders created and orders under way add up to the stock.
std::string figures(const Settings& settings, Sale& sale, Orders& orders);

/// Serves for ever, with a thread for each connection, until the process is killed.
///
/// | request | answer |
/// |---|---|
/// | `PUT /orders/<order>`, the user's number in the body | accepted, sold out, already bought |
/// | `GET /status` | the figures of the page, in JSON |
/// | `GET /` | the page |
///
/// An order that was answered before gets the same answer, and a header `Repeated: yes`.
///
/// @param listener a listening TCP socket. The process that starts the service keeps it open: a buyer that connects
/// between two processes of the service waits for the next one.
[[noreturn]] void serve(const Settings& settings, int listener);

} // namespace flash
