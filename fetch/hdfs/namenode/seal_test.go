package namenode_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// sealKey is a key of an encryption type, of its size.
func sealKey(kind int32, size int) types.EncryptionKey {
	return types.EncryptionKey{KeyType: kind, KeyValue: bytes.Repeat([]byte{7}, size)}
}

// signed is a token as a namenode makes it.
func signed(t *testing.T, key types.EncryptionKey, message []byte) []byte {
	on, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		t.Fatal(err)
	}
	token := gssapi.WrapToken{Flags: 1, EC: uint16(on.GetHMACBitLength() / 8), SndSeqNum: 9, Payload: message}
	if err := token.SetCheckSum(key, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil {
		t.Fatal(err)
	}
	b, err := token.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// encrypted is one too, with some bytes of filling.
func encrypted(t *testing.T, key types.EncryptionKey, message []byte, filling int) []byte {
	on, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		t.Fatal(err)
	}
	head := []byte{5, 4, 3, 0xff, 0, byte(filling), 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}
	_, body, err := on.EncryptMessage(key.KeyValue, slices.Concat(message, make([]byte, filling), head), keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(head, body)
}

// rotated is a token whose body was turned to the right.
func rotated(token []byte, by int) []byte {
	body := token[16:]
	n := by % len(body)
	out := slices.Concat(token[:16], body[len(body)-n:], body[:len(body)-n])
	out[6], out[7] = byte(by>>8), byte(by)
	return out
}

func TestSeal(t *testing.T) {
	message := []byte("a message of some length")
	for _, key := range []types.EncryptionKey{sealKey(17, 16), sealKey(18, 32), sealKey(19, 16), sealKey(20, 32)} {
		s, err := namenode.NewSeal(key)
		if err != nil {
			t.Fatal(err)
		}
		rows := []struct {
			name   string
			token  []byte
			secret bool
		}{
			{"signed", signed(t, key, message), false},
			{"signed, rotated", rotated(signed(t, key, message), 5), false},
			{"encrypted", encrypted(t, key, message, 0), true},
			{"encrypted, rotated", rotated(encrypted(t, key, message, 0), 28), true},
			{"encrypted, rotated round", rotated(encrypted(t, key, message, 0), 0x1234), true},
			{"encrypted, filled", encrypted(t, key, message, 16), true},
		}
		for _, r := range rows {
			t.Run(fmt.Sprint(key.KeyType, " ", r.name), func(t *testing.T) {
				if got, err := s.In(r.token, r.secret); err != nil || !bytes.Equal(got, message) {
					t.Fatalf("got %q, %v", got, err)
				}
				if _, err := s.In(r.token, !r.secret); err == nil {
					t.Error("it passes for the other kind")
				}
				tampered(t, s, r.token, r.secret)
			})
		}
	}
}

// tampered changes each byte of a token and cuts it at each. Only where the
// rotation stands, which nothing guards, may a change lead to the same body.
func tampered(t *testing.T, s namenode.Seal, token []byte, secret bool) {
	for i := range token {
		b := bytes.Clone(token)
		b[i] ^= 0x41
		got, err := s.In(b, secret)
		if err == nil && i != 6 && i != 7 {
			t.Errorf("byte %d changed, and %q came out", i, got)
		}
		if _, err := s.In(token[:i], secret); err == nil {
			t.Errorf("cut at %d, and it was accepted", i)
		}
	}
}

// What goes out cannot be sent back, and is never twice the same.
func TestSealOut(t *testing.T) {
	s, err := namenode.NewSeal(sealKey(18, 32))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []bool{false, true} {
		a, err := s.Out([]byte("x"), secret)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.In(a, secret); err == nil {
			t.Error("our own token passes for one of a namenode")
		}
		if b, err := s.Out([]byte("x"), secret); err != nil || bytes.Equal(a, b) {
			t.Errorf("twice the same, or %v", err)
		}
	}
	_, err = namenode.NewSeal(sealKey(23, 16))
	holds(t, err, []string{"encryption type 23", "AES"}, []error{meta.ErrInvalid})
}
