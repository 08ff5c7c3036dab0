// The memory behind the AXI4 port: pages on demand, zero where nothing was written.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

class Memory {
public:
    static constexpr uint64_t PAGE_BYTES = 4096;

    struct Page {
        std::array<uint8_t, PAGE_BYTES> bytes{};
        bool dirty = false;
    };

    Page &page(uint64_t address) {
        const uint64_t number = address / PAGE_BYTES;
        if (number != number_ || page_ == nullptr) {
            std::unique_ptr<Page> &found = pages_[number];
            if (!found)
                found = std::make_unique<Page>();
            number_ = number;
            page_ = found.get();
        }
        return *page_;
    }

    // A beat lies in one page, since it is aligned to its size.
    void read(uint64_t address, uint8_t *data, unsigned bytes) {
        std::memcpy(data, page(address).bytes.data() + address % PAGE_BYTES, bytes);
    }

    void write(uint64_t address, const uint8_t *data, unsigned bytes, uint64_t strobe) {
        Page &target = page(address);
        target.dirty = true;
        uint8_t *place = target.bytes.data() + address % PAGE_BYTES;
        for (unsigned lane = 0; lane < bytes; lane++)
            if (strobe >> lane & 1)
                place[lane] = data[lane];
    }

    std::vector<uint64_t> dirty() const {
        std::vector<uint64_t> addresses;
        for (const auto &[number, page] : pages_)
            if (page->dirty)
                addresses.push_back(number * PAGE_BYTES);
        return addresses;
    }

    void clear() {
        pages_.clear();
        page_ = nullptr;
    }

private:
    std::unordered_map<uint64_t, std::unique_ptr<Page>> pages_;
    uint64_t number_ = 0;
    Page *page_ = nullptr;
};
