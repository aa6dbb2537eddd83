package mounting

// Options are the options of a mount as they were written, whether as flags or in
// fstab. Each has a row in table.
type Options struct {
	State         string
	nvme          []string // DIR:SIZE, for what leaves memory and costs more to fetch
	nvmeFloor     string   // SIZE or N%
	ram           string
	poolRAM       string
	poolNVMe      string // DIR:SIZE
	cachePolicy   string // empty: the first
	private       bool   // other users can neither read the mount nor ask its daemon
	adminGroup    string // name or number; empty: none
	noPassthrough bool
	uid, gid      uint32
	umask         string // octal
	logLevel      string
	hadoopConf    string // directory
	hdfsUser      string
	login         login
	cluster       membership
}
