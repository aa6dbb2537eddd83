package index

import (
	"maps"
	"slices"
	"strings"
)

// isName reports whether a host or a rack can be called so.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && strings.IndexByte(s, 0) < 0
}

// appendRacks encodes the racks of hosts, in the order of their names.
func appendRacks(b []byte, rackOf map[string]string) []byte {
	hosts := make(map[string][]string)
	for host, rack := range rackOf {
		hosts[rack] = append(hosts[rack], host)
	}
	for _, rack := range slices.Sorted(maps.Keys(hosts)) {
		slices.Sort(hosts[rack])
		b = appendString(b, rack+"\x00"+strings.Join(hosts[rack], "\x00")+"\x00")
	}
	return b
}

// readRacks reads the racks of hosts, nil if none are there.
func readRacks(b []byte) (rackOf map[string]string, err error) {
	switch {
	case len(b) == 0:
		return nil, nil
	case len(b) > 2*maxHosts*(maxName+4):
		return nil, corrupt("rack table", "%d bytes", len(b))
	}
	rackOf = make(map[string]string)
	for last := ""; len(b) > 0; {
		text, rest, ok := cutString(b)
		names := strings.Split(text, "\x00")
		n := len(names) - 1
		if !ok || n < 2 || names[n] != "" || names[0] <= last {
			return nil, corrupt("rack table", "a rack has no name, no hosts, or is out of order")
		}
		for _, host := range names[1:n] {
			if _, known := rackOf[host]; known || !isName(host) || !isName(names[0]) || len(rackOf) == maxHosts {
				return nil, corrupt("rack table", "host %.40q", host)
			}
			rackOf[host] = names[0]
		}
		last, b = names[0], rest
	}
	return rackOf, nil
}
