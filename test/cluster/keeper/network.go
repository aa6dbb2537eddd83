package main

import (
	"fmt"
	"os/exec"
	"strings"

	"rankfs/test/cluster/internal/site"
)

// ip runs commands of ip(8), where the caller is.
func ip(commands ...string) error {
	c := exec.Command("ip", "-batch", "-")
	c.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(commands, "; "), err, out)
	}
	return nil
}

// buildNetwork makes the switch, which is in the keeper's own namespace, and
// plugs a cable of each host into it. No way leads out.
func buildNetwork(s *site.Site, holders []*holder) error {
	commands := []string{
		"link set lo up",
		"link add br0 type bridge forward_delay 0",
		"addr add " + site.Bridge + "/24 dev br0",
		"link set br0 up",
	}
	for i, h := range s.Hosts {
		commands = append(commands,
			fmt.Sprintf("link add %s type veth peer name eth0 netns %d", h.Name, holders[i].pid),
			fmt.Sprintf("link set %s master br0 up", h.Name))
	}
	return ip(commands...)
}

// hostsFile is /etc/hosts of all hosts.
func hostsFile(s *site.Site) string {
	text := "127.0.0.1 localhost\n"
	for _, h := range s.Hosts {
		text += h.IP + " " + h.Name + "\n"
	}
	return text
}
