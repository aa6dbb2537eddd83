package system_test

import (
	"slices"
	"strings"
	"testing"
)

// A daemon that does not know the addresses of its host finds local replicas only by the host's
// name, and says so, in status and in the log.
func TestUnknownAddressesAreTold(t *testing.T) {
	if all := start(t).status().Warnings; slices.ContainsFunc(all, func(w string) bool { return strings.Contains(w, "addresses") }) {
		t.Errorf("warnings where addresses are known: %q", all)
	}
	t.Setenv(boundsEnv, "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6")
	n := newNode(t)
	n.Under("/proc/self/exe")
	n.start("--host", "node1.example.com")
	told := func(all []string) bool {
		return slices.ContainsFunc(all, func(w string) bool {
			return strings.Contains(w, "addresses of this host") && strings.Contains(w, "node1.example.com")
		})
	}
	if all := n.status().Warnings; !told(all) {
		t.Errorf("warnings of status: %q", all)
	}
	if log := n.Log(); !told(strings.Split(log, "\n")) {
		t.Errorf("log: %s", log)
	}
}
