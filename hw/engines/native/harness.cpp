// The clock, the memory and the control port around a compiled model of the simulation top.
//
// "model.h" is generated for each model. It defines the constant BUS_BYTES, the macro SCRATCHPADS, which uses
// another one with number, name and bytes of an element of each scratchpad, and struct Model: an accessor for
// each port, settle() after the inputs of a cycle have been set, and tick() for the clock edge that ends it. Python calls the functions at the end of this file; none is called
// once per cycle.

#include "pages.h"
#include "model.h"

#include <cinttypes>
#include <cstdio>
#include <deque>
#include <random>
#include <string>

namespace {

constexpr uint64_t NOTHING = ~uint64_t(0);
constexpr uint64_t OKAY = 0, SLVERR = 2;
constexpr uint64_t INCREMENTING = 1;

enum Kind : uint8_t { PUSH, START, RETIRE, READ_GRANT, READ_LAST, WRITE_GRANT, WRITE_LAST };

// What the observation ports show, as numpy reads it; Python makes events of it.
struct Record {
    uint64_t cycle;
    uint32_t instruction;
    uint16_t value;
    uint8_t unit;
    uint8_t kind;
};
static_assert(sizeof(Record) == 16);

struct Behaviour {
    uint64_t mem_base, mem_size;
    uint64_t read_latency, write_latency;
    uint64_t hostile;      // answers come late and ready is taken away at random
    uint64_t seed;         // of that
    uint64_t bad_read;     // ordinal of the read burst that is answered with an error
    uint64_t bad_beat;     // in which beat
    uint64_t bad_write;    // ordinal of the write burst that is answered with an error
    uint64_t short_read;   // ordinal of the read burst that ends a beat early
    uint64_t surplus_read; // ordinal of the read burst that ends a beat late
};

struct Burst {
    uint64_t address;
    unsigned beats;
    uint64_t earliest;
    uint64_t ordinal;
};

struct Beat {
    std::array<uint8_t, BUS_BYTES> data;
    uint64_t strobe;
    bool last;
};

struct Response {
    uint64_t earliest;
    uint64_t code;
};

// What must not change between cycles in which valid waits for ready.
struct Offer {
    bool waiting = false;
    std::array<uint64_t, 3> payload{};

    bool steady(bool valid, bool ready, const std::array<uint64_t, 3> &now) {
        const bool good = !waiting || (valid && now == payload);
        waiting = valid && !ready;
        payload = now;
        return good;
    }
};

uint64_t digest(const uint8_t *data, unsigned bytes) {
    uint64_t sum = 0;
    for (unsigned at = 0; at < bytes; at += 8) {
        uint64_t word;
        std::memcpy(&word, data + at, 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    }
    return sum;
}

// One transfer on the control port: what is still to be handed over, and the answer.
struct Lite {
    bool address = false, data = false, answer = false;
    uint64_t at = 0, word = 0, code = OKAY;

    bool pending() const { return address || data || answer; }
};

class Harness {
public:
    Model model;
    Memory memory;
    std::vector<Record> records;
    std::string violation;
    bool recording = false;
    bool started = false;  // a run has begun since the harness was configured
    bool running = false;

    void configure(const Behaviour &behaviour) {
        behaviour_ = behaviour;
        random_.seed(behaviour.seed);
        read_ordinal_ = write_ordinal_ = 0;
        started = false;
    }

    void reset() {
        model.rst(1);
        for (int count = 0; count < 2; count++) {
            model.settle();
            tick();
        }
        model.rst(0);
        reads_.clear();
        writes_.clear();
        beats_.clear();
        responses_.clear();
        read_offered_ = response_offered_ = false;
        ar_ = aw_ = w_ = Offer();
        started = running = false;
    }

    void cycle() {
        drive();
        model.settle();
        control();
        read_channels();
        write_channels();
        running = model.running();
        if (running) {
            started = true;
            if (recording && !model.halted())
                observe();
        }
        tick();
    }

    // A transfer on the control port; the machine goes on meanwhile.
    uint64_t write(uint64_t address, uint64_t word) {
        lite_write_ = Lite{true, true, true, address, word, OKAY};
        while (lite_write_.pending())
            cycle();
        return lite_write_.code;
    }

    uint64_t read(uint64_t address, uint32_t *word) {
        lite_read_ = Lite{true, false, true, address, 0, OKAY};
        while (lite_read_.pending())
            cycle();
        *word = uint32_t(lite_read_.word);
        return lite_read_.code;
    }

    // Whether everything that the bus was asked for has been answered.
    bool quiet() const { return reads_.empty() && writes_.empty() && beats_.empty() && responses_.empty(); }

private:
    // The clock rises; in waves a cycle takes two units of time.
    void tick() {
        model.sample(2 * now_);
        model.tick();
        model.sample(2 * now_ + 1);
        now_++;
    }

    bool toss() { return random_() & 1; }

    // Cycles that an answer comes late.
    uint64_t delay() { return behaviour_.hostile && toss() ? random_() % 64 : 0; }

    void blame(const char *what, uint64_t address) {
        if (!violation.empty())
            return;
        char text[160];
        std::snprintf(text, sizeof text, "%s (address %#" PRIx64 ", clock cycle %" PRIu64 ")", what, address, now_);
        violation = text;
    }

    // The inputs of this cycle.
    void drive() {
        const bool hostile = behaviour_.hostile;
        model.m_axi_arready(!hostile || toss());
        model.m_axi_awready(!hostile || toss());
        model.m_axi_wready(!hostile || toss());
        if (!read_offered_ && !reads_.empty() && reads_.front().earliest <= now_ && (!hostile || toss())) {
            const Burst &burst = reads_.front();
            std::array<uint8_t, BUS_BYTES> data;
            memory.read(burst.address + uint64_t(read_beat_) * BUS_BYTES, data.data(), BUS_BYTES);
            const bool bad = burst.ordinal == behaviour_.bad_read && read_beat_ == behaviour_.bad_beat;
            model.m_axi_rdata(data.data());
            model.m_axi_rresp(bad ? SLVERR : OKAY);
            model.m_axi_rlast(read_beat_ + 1 == burst.beats);
            read_offered_ = true;
        }
        model.m_axi_rvalid(read_offered_);
        if (!response_offered_ && !responses_.empty() && responses_.front().earliest <= now_)
            response_offered_ = true;
        model.m_axi_bvalid(response_offered_);
        model.m_axi_bresp(response_offered_ ? responses_.front().code : OKAY);

        model.s_axi_awvalid(lite_write_.address);
        model.s_axi_awaddr(lite_write_.at);
        model.s_axi_wvalid(lite_write_.data);
        model.s_axi_wdata(lite_write_.word);
        model.s_axi_wstrb(0xF);
        model.s_axi_bready(lite_write_.answer);
        model.s_axi_arvalid(lite_read_.address);
        model.s_axi_araddr(lite_read_.at);
        model.s_axi_rready(lite_read_.answer);
    }

    void control() {
        if (lite_write_.pending()) {
            if (lite_write_.answer && model.s_axi_bvalid()) {
                lite_write_.code = model.s_axi_bresp();
                lite_write_.answer = false;
            }
            lite_write_.address &= !model.s_axi_awready();
            lite_write_.data &= !model.s_axi_wready();
        }
        if (lite_read_.pending()) {
            if (lite_read_.answer && model.s_axi_rvalid()) {
                lite_read_.code = model.s_axi_rresp();
                lite_read_.word = model.s_axi_rdata();
                lite_read_.answer = false;
            }
            lite_read_.address &= !model.s_axi_arready();
        }
    }

    void read_channels() {
        const bool valid = model.m_axi_arvalid(), ready = model.in_m_axi_arready();
        if (valid || ar_.waiting) {
            const Burst burst = asked(model.m_axi_araddr(), model.m_axi_arlen(), model.m_axi_arsize(), model.m_axi_arburst());
            if (!ar_.steady(valid, ready, {burst.address, burst.beats, 0}))
                blame("the design changes a read address that waits", burst.address);
            if (valid && ready) {
                reads_.push_back(burst);
                reads_.back().earliest = now_ - 1 + behaviour_.read_latency + delay();
                reads_.back().ordinal = read_ordinal_++;
                reads_.back().beats -= reads_.back().ordinal == behaviour_.short_read;
                reads_.back().beats += reads_.back().ordinal == behaviour_.surplus_read;
            }
        }
        if (read_offered_ && model.m_axi_rready()) {
            read_offered_ = false;
            if (++read_beat_ == reads_.front().beats) {
                reads_.pop_front();
                read_beat_ = 0;
            }
        }
    }

    void write_channels() {
        if (response_offered_ && model.m_axi_bready()) {
            responses_.pop_front();
            response_offered_ = false;
        }
        const bool valid = model.m_axi_awvalid(), ready = model.in_m_axi_awready();
        if (valid || aw_.waiting) {
            const Burst burst = asked(model.m_axi_awaddr(), model.m_axi_awlen(), model.m_axi_awsize(), model.m_axi_awburst());
            if (!aw_.steady(valid, ready, {burst.address, burst.beats, 0}))
                blame("the design changes a write address that waits", burst.address);
            if (valid && ready) {
                writes_.push_back(burst);
                writes_.back().ordinal = write_ordinal_++;
            }
        }
        const bool data_valid = model.m_axi_wvalid(), data_ready = model.in_m_axi_wready();
        if (data_valid || w_.waiting) {
            Beat beat;
            model.m_axi_wdata(beat.data.data());
            beat.strobe = model.m_axi_wstrb();
            beat.last = model.m_axi_wlast();
            if (!w_.steady(data_valid, data_ready, {digest(beat.data.data(), BUS_BYTES), beat.strobe, beat.last}))
                blame("the design changes a write beat that waits", 0);
            if (data_valid && data_ready)
                beats_.push_back(beat);
        }
        while (!writes_.empty() && !beats_.empty())
            write_beat();
    }

    // Take a burst's parameters, and check them.
    Burst asked(uint64_t address, uint64_t length, uint64_t size, uint64_t burst) {
        const Burst found{address, unsigned(length) + 1, 0, 0};
        const uint64_t last = address + length * BUS_BYTES;
        if ((uint64_t(1) << size) != BUS_BYTES || burst != INCREMENTING)
            blame("the design asks for a burst of another kind than full beats, incrementing", address);
        if (address % BUS_BYTES)
            blame("the design asks for a burst that does not start at a beat", address);
        if (address / Memory::PAGE_BYTES != last / Memory::PAGE_BYTES)
            blame("the design asks for a burst across a 4 KiB boundary", address);
        if (address + BUS_BYTES <= behaviour_.mem_base || last >= behaviour_.mem_base + behaviour_.mem_size)
            blame("the design asks for a burst outside of the DRAM window", address);
        return found;
    }

    void write_beat() {
        const Burst &burst = writes_.front();
        const Beat &beat = beats_.front();
        const uint64_t address = burst.address + uint64_t(written_beats_) * BUS_BYTES;
        for (unsigned lane = 0; lane < BUS_BYTES; lane++)
            if ((beat.strobe >> lane & 1) && !inside(address + lane))
                blame("the design writes outside of the DRAM window", address + lane);
        memory.write(address, beat.data.data(), BUS_BYTES, beat.strobe);
        const bool last = ++written_beats_ == burst.beats;
        if (beat.last != last)
            blame("the design marks another beat of a burst as the last one", address);
        if (last) {
            const bool bad = burst.ordinal == behaviour_.bad_write;
            responses_.push_back({now_ + behaviour_.write_latency + delay(), bad ? SLVERR : OKAY});
            writes_.pop_front();
            written_beats_ = 0;
        }
        beats_.pop_front();
    }

    bool inside(uint64_t address) const {
        return address >= behaviour_.mem_base && address < behaviour_.mem_base + behaviour_.mem_size;
    }

    void note(Kind kind, uint64_t unit, uint64_t instruction, uint64_t value) {
        records.push_back({model.cycle(), uint32_t(instruction), uint16_t(value), uint8_t(unit), kind});
    }

    void observe() {
        if (model.ev_push())
            note(PUSH, 0, model.ev_push_index(), model.ev_push_unit());
#define UNIT(number, name)                                                                              \
    if (model.ev_##name##_start())                                                                      \
        note(START, number, model.ev_##name##_start_index(), model.ev_##name##_start_pops());           \
    if (model.ev_##name##_retire())                                                                     \
        note(RETIRE, number, model.ev_##name##_retire_index(), model.ev_##name##_retire_pushes());
        UNIT(1, load)
        UNIT(2, compute)
        UNIT(3, store)
#undef UNIT
        if (model.ev_read_grant())
            note(READ_GRANT, model.ev_read_grant_unit(), model.ev_read_grant_index(), model.ev_read_grant_beats());
        if (model.ev_read_last())
            note(READ_LAST, model.ev_read_last_unit(), model.ev_read_last_index(), model.ev_read_last_beats());
        if (model.ev_write_grant())
            note(WRITE_GRANT, 3, model.ev_write_grant_index(), model.ev_write_grant_beats());
        if (model.ev_write_last())
            note(WRITE_LAST, 3, model.ev_write_last_index(), model.ev_write_last_beats());
    }

    Behaviour behaviour_{};
    std::mt19937_64 random_;
    uint64_t now_ = 0;
    uint64_t read_ordinal_ = 0, write_ordinal_ = 0;
    std::deque<Burst> reads_, writes_;
    std::deque<Beat> beats_;
    std::deque<Response> responses_;
    unsigned read_beat_ = 0, written_beats_ = 0;
    bool read_offered_ = false, response_offered_ = false;
    Offer ar_, aw_, w_;
    Lite lite_write_, lite_read_;
};

}  // namespace

extern "C" {

Harness *accel_new() { return new Harness; }

void accel_delete(Harness *harness) { delete harness; }

void accel_configure(Harness *harness, const Behaviour *behaviour) { harness->configure(*behaviour); }

void accel_reset(Harness *harness) { harness->reset(); }

void accel_record(Harness *harness, int on) {
    harness->recording = on;
    harness->records.clear();
}

uint64_t accel_records(Harness *harness, const Record **records) {
    *records = harness->records.data();
    return harness->records.size();
}

const char *accel_violation(Harness *harness) { return harness->violation.c_str(); }

// --- memory ---

void accel_empty(Harness *harness) { harness->memory.clear(); }

void accel_fill(Harness *harness, uint64_t address, const uint8_t *bytes) {
    std::memcpy(harness->memory.page(address).bytes.data(), bytes, Memory::PAGE_BYTES);
}

uint64_t accel_dirty(Harness *harness, uint64_t *addresses, uint64_t room) {
    const std::vector<uint64_t> found = harness->memory.dirty();
    for (uint64_t position = 0; position < found.size() && position < room; position++)
        addresses[position] = found[position];
    return found.size();
}

void accel_fetch(Harness *harness, uint64_t address, uint8_t *bytes) {
    std::memcpy(bytes, harness->memory.page(address).bytes.data(), Memory::PAGE_BYTES);
}

// --- the machine ---

uint64_t accel_write(Harness *harness, uint64_t address, uint64_t word) { return harness->write(address, word); }

uint64_t accel_read(Harness *harness, uint64_t address, uint32_t *word) { return harness->read(address, word); }

#define COUNT(number, name, bytes) +1
constexpr int SCRATCHPAD_COUNT = SCRATCHPADS(COUNT);
#undef COUNT

static uint64_t most_elements(const uint64_t *depths) {
    uint64_t most = 0;
    for (int memory = 0; memory < SCRATCHPAD_COUNT; memory++)
        most = depths[memory] > most ? depths[memory] : most;
    return most;
}

// Fill the scratchpads, an element of each in a cycle.
void accel_preload(Harness *harness, const uint8_t *const *contents, const uint64_t *depths) {
    Model &model = harness->model;
    const uint64_t most = most_elements(depths);
    for (uint64_t element = 0; element < most; element++) {
#define FILL(number, name, bytes)                                      \
    model.pre_##name##_en(element < depths[number]);                   \
    if (element < depths[number]) {                                    \
        model.pre_##name##_addr(element);                              \
        model.pre_##name##_data(contents[number] + element * (bytes)); \
    }
        SCRATCHPADS(FILL)
#undef FILL
        harness->cycle();
    }
#define END(number, name, bytes) model.pre_##name##_en(0);
    SCRATCHPADS(END)
#undef END
}

// Copy the scratchpads, an element of each in a cycle; between runs.
void accel_peek(Harness *harness, uint8_t *const *contents, const uint64_t *depths) {
    Model &model = harness->model;
    const uint64_t most = most_elements(depths);
#define BEGIN(number, name, bytes) model.peek_##name##_en(1);
    SCRATCHPADS(BEGIN)
#undef BEGIN
    for (uint64_t element = 0; element < most; element++) {
#define ASK(number, name, bytes)  \
    if (element < depths[number]) \
        model.peek_##name##_addr(element);
        SCRATCHPADS(ASK)
#undef ASK
        harness->cycle();
        model.settle();
#define TAKE(number, name, bytes) \
    if (element < depths[number]) \
        model.peek_##name##_data(contents[number] + element * (bytes));
        SCRATCHPADS(TAKE)
#undef TAKE
    }
#define END(number, name, bytes) model.peek_##name##_en(0);
    SCRATCHPADS(END)
#undef END
}

// What the token counters hold.
void accel_tokens(Harness *harness, uint64_t *counts) {
    Model &model = harness->model;
    model.settle();
    counts[0] = model.tokens_0();
    counts[1] = model.tokens_1();
    counts[2] = model.tokens_2();
    counts[3] = model.tokens_3();
}

// The counts of accesses since the start of the last run.
void accel_accesses(Harness *harness, uint64_t *counts, uint64_t count) {
    Model &model = harness->model;
    for (uint64_t number = 0; number < count; number++) {
        model.access_select(number);
        model.settle();
        counts[number] = model.access_count();
    }
    model.access_select(0);
}

// Up to so many cycles. Returns 1 when the run has ended, 2 when the design broke a rule of the bus, else 0.
int accel_run(Harness *harness, uint64_t cycles) {
    for (uint64_t count = 0; count < cycles; count++) {
        const bool ended = harness->started && !harness->running;
        if (ended && !harness->quiet() && harness->violation.empty())
            harness->violation = "the design ends a run before the bus has answered everything";
        if (!harness->violation.empty())
            return 2;
        if (ended)
            return 1;
        harness->cycle();
    }
    return 0;
}

uint64_t accel_cycle(Harness *harness) { return harness->model.cycle(); }

int accel_wave(Harness *harness, const char *path) { return harness->model.open_wave(path); }

// Why the wave file could not be written, an errno; 0 as far as is known.
int accel_wave_error(Harness *harness) { return harness->model.wave_error(); }

void accel_close_wave(Harness *harness) { harness->model.close_wave(); }
}
