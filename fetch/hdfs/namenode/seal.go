package namenode

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/crypto/etype"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"

	"rankfs/meta"
)

// A seal signs or encrypts messages as RFC 4121 (4.2.6.2) has it, with a key
// that no other connection has. A message that an attacker replays can therefore only
// be the reply to a call that has its reply already.
type seal struct {
	key types.EncryptionKey
	on  etype.EType
	seq uint64 // of the next message out
}

const (
	sealHead = 16 // bytes of a token's header

	fromAcceptor = 1
	encrypted    = 2
)

func newSeal(key types.EncryptionKey, seq uint64) (*seal, error) {
	modern := []int32{etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96,
		etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192}
	if !slices.Contains(modern, key.KeyType) {
		return nil, fmt.Errorf("kerberos encryption type %d %w: only AES is supported; give the namenode's principal AES keys", key.KeyType, meta.ErrInvalid)
	}
	on, err := crypto.GetEtype(key.KeyType)
	return &seal{key: key, on: on, seq: seq}, err
}

// header is the header of a token. The sizes in it are zero where it is signed.
func header(flags byte, extra uint16, seq uint64) []byte {
	b := []byte{5, 4, flags, 0xff}
	b = binary.BigEndian.AppendUint16(b, extra)
	b = binary.BigEndian.AppendUint16(b, 0) // no rotation
	return binary.BigEndian.AppendUint64(b, seq)
}

// out makes a token of a message to the namenode.
func (s *seal) out(message []byte, secret bool) ([]byte, error) {
	seq := s.seq
	s.seq++
	if secret {
		head := header(encrypted, 0, seq)
		_, body, err := s.on.EncryptMessage(s.key.KeyValue, slices.Concat(message, head), keyusage.GSSAPI_INITIATOR_SEAL)
		return append(head, body...), err
	}
	sum, err := s.on.GetChecksumHash(s.key.KeyValue, slices.Concat(message, header(0, 0, seq)), keyusage.GSSAPI_INITIATOR_SEAL)
	return slices.Concat(header(0, uint16(len(sum)), seq), message, sum), err
}

// in takes the message out of a token of the namenode's.
func (s *seal) in(token []byte, secret bool) ([]byte, error) {
	if len(token) < sealHead || token[0] != 5 || token[1] != 4 || token[2]&^encrypted != fromAcceptor || token[3] != 0xff {
		return nil, fmt.Errorf("token of %d bytes %w: it is none of a namenode", len(token), meta.ErrCorrupt)
	}
	if secret != (token[2]&encrypted != 0) {
		return nil, fmt.Errorf("token %w: it is guarded in another way than agreed on", meta.ErrCorrupt)
	}
	extra := int(binary.BigEndian.Uint16(token[4:]))
	body := unrotated(token[sealHead:], int(binary.BigEndian.Uint16(token[6:])))
	seq := binary.BigEndian.Uint64(token[8:])
	if secret {
		return s.decrypted(body, extra, seq)
	}
	if extra > len(body) {
		return nil, fmt.Errorf("token %w: its checksum is longer than itself", meta.ErrCorrupt)
	}
	message, sum := body[:len(body)-extra], body[len(body)-extra:]
	want, err := s.on.GetChecksumHash(s.key.KeyValue, slices.Concat(message, header(token[2], 0, seq)), keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil || !hmac.Equal(sum, want) {
		return nil, fmt.Errorf("token %w: its checksum is wrong", meta.ErrCorrupt)
	}
	return message, nil
}

// unrotated undoes a rotation to the right.
func unrotated(b []byte, by int) []byte {
	if by == 0 || len(b) == 0 {
		return b
	}
	by %= len(b)
	return slices.Concat(b[by:], b[:by])
}

// decrypted is the message in the body of a token, behind which stand extra
// bytes of filling and a copy of the header.
func (s *seal) decrypted(body []byte, extra int, seq uint64) ([]byte, error) {
	if len(body) < s.on.GetConfounderByteSize()+sealHead+s.on.GetHMACBitLength()/8 {
		return nil, fmt.Errorf("token %w: it is too short", meta.ErrCorrupt)
	}
	b, err := s.on.DecryptMessage(s.key.KeyValue, body, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, fmt.Errorf("token %w: %v", meta.ErrCorrupt, err)
	}
	end := len(b) - sealHead - extra
	if end < 0 || !bytes.Equal(b[len(b)-sealHead:], header(fromAcceptor|encrypted, uint16(extra), seq)) {
		return nil, fmt.Errorf("token %w: its header was changed", meta.ErrCorrupt)
	}
	return b[:end], nil
}
