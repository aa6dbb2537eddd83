package clock

import "encoding/binary"

// clockGettime is the code of a clock_gettime whose clock is that many seconds ahead.
func clockGettime(seconds int64) ([]byte, error) {
	code := []byte{
		0xb8, 0xe4, 0, 0, 0, // mov eax, SYS_clock_gettime
		0x0f, 0x05, // syscall
		0x85, 0xc0, // test eax, eax
		0x75, 22, // jnz done
		0x85, 0xff, // test edi, edi: CLOCK_REALTIME
		0x74, 5, // jz add
		0x83, 0xff, 5, // cmp edi, CLOCK_REALTIME_COARSE
		0x75, 13, // jne done
		0x48, 0xba, // add: mov rdx, seconds
	}
	code = binary.LittleEndian.AppendUint64(code, uint64(seconds))
	return append(code,
		0x48, 0x01, 0x16, // add [rsi], rdx
		0xc3, // done: ret
	), nil
}
