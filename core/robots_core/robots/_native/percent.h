/* Percent-encoding normalisation (RFC 3986 6.2.2): one pass, at most three output bytes for each input byte. */

#ifndef PERCENT_H
#define PERCENT_H

#include <stddef.h>
#include <stdint.h>

/* Flags by byte: whether it is escaped, and whether an escape of it is decoded. */
typedef struct {
    uint8_t escaped[256];
    uint8_t decoded[256];
} Normalisation;

static inline int hex_digit(uint8_t byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static inline size_t write_escape(uint8_t byte, uint8_t *out)
{
    out[0] = '%';
    out[1] = (uint8_t)"0123456789ABCDEF"[byte >> 4];
    out[2] = (uint8_t)"0123456789ABCDEF"[byte & 15];
    return 3;
}

/* Normalise `length` bytes to `out`, which has room for three times as many; return the number of bytes written.
 * Malformed escapes are kept (spec D4f). Time: linear in `length`. */
static size_t normalise(const Normalisation *by, const uint8_t *bytes, size_t length, uint8_t *out)
{
    size_t written = 0;
    for (size_t at = 0; at < length; at++) {
        uint8_t byte = bytes[at];
        if (byte == '%' && at + 2 < length) {
            int high = hex_digit(bytes[at + 1]), low = hex_digit(bytes[at + 2]);
            if (high >= 0 && low >= 0) {
                uint8_t value = (uint8_t)(high << 4 | low);
                at += 2;
                if (by->decoded[value])
                    out[written++] = value;
                else
                    written += write_escape(value, out + written);
                continue;
            }
        }
        if (by->escaped[byte])
            written += write_escape(byte, out + written);
        else
            out[written++] = byte;
    }
    return written;
}

#endif
