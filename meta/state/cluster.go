package state

// A Cluster is identified by its id and by the authority that it trusts.
type Cluster struct {
	ID string `json:",omitempty"`
	CA string `json:",omitempty"` // fingerprint of the certificate of its authority
}
