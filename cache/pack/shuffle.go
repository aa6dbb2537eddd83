package pack

import "encoding/binary"

// shuffle writes src to dst with the bytes of each number apart: first the
// lowest byte of every number of width bytes, then the second, and so on. What
// numbers have in common, their exponents, signs and leading zeros, then
// stands together, where a compressor finds it. What is left of the last number
// stays behind.
//
// Sixty-four bytes are transposed at a time, as a square of eight words. Blocks
// are in mappings, where the race detector sees nothing, but it would ask at each byte.
//
//go:norace
func shuffle(dst, src []byte, width int) {
	n := len(src) / width // numbers
	whole := n &^ (64/width - 1)
	switch width {
	case 2:
		for i := 0; i < whole; i += 32 {
			in := (*[64]byte)(src[2*i:])
			low, high := (*[32]byte)(dst[i:]), (*[32]byte)(dst[n+i:])
			for k := 0; k < 4; k++ {
				a, b := binary.LittleEndian.Uint64(in[16*k:]), binary.LittleEndian.Uint64(in[16*k+8:])
				binary.LittleEndian.PutUint64(low[8*k:], gather(a)|gather(b)<<32)
				binary.LittleEndian.PutUint64(high[8*k:], gather(a>>8)|gather(b>>8)<<32)
			}
		}
	case 4:
		for i := 0; i < whole; i += 16 {
			in := (*[64]byte)(src[4*i:])
			var m [8]uint64
			for k := range m {
				m[k] = uint64(binary.LittleEndian.Uint32(in[4*k:])) | uint64(binary.LittleEndian.Uint32(in[4*k+32:]))<<32
			}
			transpose(&m)
			for k := range 4 {
				out := (*[16]byte)(dst[k*n+i:])
				binary.LittleEndian.PutUint64(out[:8], m[k])
				binary.LittleEndian.PutUint64(out[8:], m[k+4])
			}
		}
	case 8:
		for i := 0; i < whole; i += 8 {
			in := (*[64]byte)(src[8*i:])
			var m [8]uint64
			for k := range m {
				m[k] = binary.LittleEndian.Uint64(in[8*k:])
			}
			transpose(&m)
			for k := range m {
				binary.LittleEndian.PutUint64(dst[k*n+i:], m[k])
			}
		}
	}
	for i := whole; i < n; i++ {
		for k := range width {
			dst[k*n+i] = src[i*width+k]
		}
	}
	copy(dst[n*width:], src[n*width:])
}

// unshuffle is the inverse of shuffle.
//
//go:norace
func unshuffle(dst, src []byte, width int) {
	n := len(src) / width
	whole := n &^ (64/width - 1)
	switch width {
	case 2:
		for i := 0; i < whole; i += 32 {
			low, high := (*[32]byte)(src[i:]), (*[32]byte)(src[n+i:])
			out := (*[64]byte)(dst[2*i:])
			for k := 0; k < 4; k++ {
				a, b := binary.LittleEndian.Uint64(low[8*k:]), binary.LittleEndian.Uint64(high[8*k:])
				binary.LittleEndian.PutUint64(out[16*k:], scatter(uint32(a))|scatter(uint32(b))<<8)
				binary.LittleEndian.PutUint64(out[16*k+8:], scatter(uint32(a>>32))|scatter(uint32(b>>32))<<8)
			}
		}
	case 4:
		for i := 0; i < whole; i += 16 {
			var m [8]uint64
			for k := range 4 {
				in := (*[16]byte)(src[k*n+i:])
				m[k], m[k+4] = binary.LittleEndian.Uint64(in[:8]), binary.LittleEndian.Uint64(in[8:])
			}
			transpose(&m)
			out := (*[64]byte)(dst[4*i:])
			for k := range m {
				binary.LittleEndian.PutUint32(out[4*k:], uint32(m[k]))
				binary.LittleEndian.PutUint32(out[4*k+32:], uint32(m[k]>>32))
			}
		}
	case 8:
		for i := 0; i < whole; i += 8 {
			var m [8]uint64
			for k := range m {
				m[k] = binary.LittleEndian.Uint64(src[k*n+i:])
			}
			transpose(&m)
			out := (*[64]byte)(dst[8*i:])
			for k := range m {
				binary.LittleEndian.PutUint64(out[8*k:], m[k])
			}
		}
	}
	for i := whole; i < n; i++ {
		for k := range width {
			dst[i*width+k] = src[k*n+i]
		}
	}
	copy(dst[n*width:], src[n*width:])
}

// gather returns every second byte of x.
func gather(x uint64) uint64 {
	x &= 0x00ff00ff00ff00ff
	x = (x | x>>8) & 0x0000ffff0000ffff
	return (x | x>>16) & 0x00000000ffffffff
}

// scatter is the inverse of gather.
func scatter(v uint32) uint64 {
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	return (x | x<<8) & 0x00ff00ff00ff00ff
}

// transpose swaps rows and columns of eight by eight bytes, by halves, quarters and eighths.
//
//go:norace
func transpose(m *[8]uint64) {
	a, b, c, d, e, f, g, h := m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7]
	a, e = a&0xffffffff|e<<32, a>>32|e&^0xffffffff
	b, f = b&0xffffffff|f<<32, b>>32|f&^0xffffffff
	c, g = c&0xffffffff|g<<32, c>>32|g&^0xffffffff
	d, h = d&0xffffffff|h<<32, d>>32|h&^0xffffffff
	const s = 0x0000ffff0000ffff
	a, c = a&s|c&s<<16, a>>16&s|c&^s
	b, d = b&s|d&s<<16, b>>16&s|d&^s
	e, g = e&s|g&s<<16, e>>16&s|g&^s
	f, h = f&s|h&s<<16, f>>16&s|h&^s
	const t = 0x00ff00ff00ff00ff
	m[0], m[1] = a&t|b&t<<8, a>>8&t|b&^t
	m[2], m[3] = c&t|d&t<<8, c>>8&t|d&^t
	m[4], m[5] = e&t|f&t<<8, e>>8&t|f&^t
	m[6], m[7] = g&t|h&t<<8, g>>8&t|h&^t
}
