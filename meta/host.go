package meta

import (
	"net/netip"
	"strings"
)

// maxHost is the limit of the domain name system.
const maxHost = 253

// IsHost reports whether s can be a host's name, or is an address. A name is of labels,
// none of them empty, and does not begin with a dash: mpirun and ssh would take that for
// an option. Which host it is of is not looked at.
func IsHost(s string) bool {
	if s == "" || len(s) > maxHost {
		return false
	}
	if strings.ContainsAny(s, ":%") { // of addresses alone: node1:7420 is none, nor a name
		_, err := netip.ParseAddr(s)
		return err == nil && isPlain(s)
	}
	for label := range strings.SplitSeq(trimHost(s), ".") {
		if label == "" || label[0] == '-' || !isPlain(label) {
			return false
		}
	}
	return true
}

// isPlain reports whether s is fit to be printed among other things.
func isPlain(s string) bool {
	for _, r := range s {
		ok := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_:%", r)
		if !ok {
			return false
		}
	}
	return true
}

// SameHost reports whether two names are of one host. Case and a dot at the end
// make no difference, addresses compare as addresses, and a short name is the
// first label of a full one: node1 is node1.example.com, while that and
// node1.example.org are two hosts. The name localhost says of each host that it is
// itself, so it is no short name of another; and an empty name is no host's.
func SameHost(a, b string) bool {
	a, b = trimHost(a), trimHost(b)
	if a == "" || b == "" {
		return false
	}
	if equalFold(a, b) {
		return true
	}
	address, isAddress := hostAddress(a)
	other, isOther := hostAddress(b)
	if isAddress || isOther {
		return isAddress && isOther && address == other
	}
	first, _, full := strings.Cut(a, ".")
	second, _, both := strings.Cut(b, ".")
	return full != both && equalFold(first, second) && !equalFold(first, "localhost")
}

func trimHost(name string) string { return strings.TrimSuffix(name, ".") }

// equalFold compares letters of ASCII alone: names of hosts have no others.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// hostAddress reads a name that is an address.
func hostAddress(name string) (netip.Addr, bool) {
	last := name[len(name)-1]
	if !strings.Contains(name, ":") && (last < '0' || last > '9') { // mostly: spares an error
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(name)
	return a.Unmap(), err == nil
}

// Hosts finds what belongs to a host by any of its names. The zero value is
// empty.
type Hosts[T any] struct {
	named map[string][]hostEntry[T] // by what names of one host have in common
}

type hostEntry[T any] struct {
	name string
	of   T
}

// Add adds a value to those of a host.
func (h *Hosts[T]) Add(name string, of T) {
	if h.named == nil {
		h.named = make(map[string][]hostEntry[T])
	}
	k := hostKey(name)
	h.named[k] = append(h.named[k], hostEntry[T]{name, of})
}

// Find returns what was added of a host, in that order. Where some of it was
// added by this very name, what was added by another one is left out.
func (h *Hosts[T]) Find(name string) (found []T) {
	same := h.named[hostKey(name)]
	for _, e := range same {
		if SameHost(e.name, name) && isFull(e.name) == isFull(name) {
			found = append(found, e.of)
		}
	}
	if found != nil {
		return found
	}
	for _, e := range same {
		if SameHost(e.name, name) {
			found = append(found, e.of)
		}
	}
	return found
}

// isFull reports whether there is a dot in a name.
func isFull(name string) bool { return strings.Contains(trimHost(name), ".") }

// hostKey is the same for all names of one host.
func hostKey(name string) string {
	name = trimHost(name)
	if name == "" {
		return ""
	}
	if a, ok := hostAddress(name); ok {
		return a.String()
	}
	first, _, _ := strings.Cut(name, ".")
	return strings.ToLower(first)
}
