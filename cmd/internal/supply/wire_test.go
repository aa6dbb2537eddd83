package supply

import (
	"encoding/hex"
	"testing"
)

func TestEncode(t *testing.T) {
	for _, row := range []struct {
		name string
		n    notification
		want string
	}{
		{"small", delivered(0x0102, 0x0304), "0201000000000000" + "0000000000000000" + "0403000000000000" +
			"00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "04030000" + "00000000"},
		{"beyond 32 bits", delivered(1, 5<<32), "0100000000000000" + "0000000000000000" + "0000000005000000" +
			"00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "ffffffff" + "00000000"},
		{"end of data", notification{sequence: 3, status: ended}, "0300000000000000" + "0000000000000000" + "0000000000000000" +
			"00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "00000000" + "01000000"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := hex.EncodeToString(row.n.encode()); got != row.want || len(got) != 2*notificationBytes {
				t.Errorf("encoded\n%s, want\n%s", got, row.want)
			}
		})
	}
}
