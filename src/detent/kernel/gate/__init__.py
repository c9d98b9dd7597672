"""A tenant's Gate: limits, pools and concurrency keys, asked all or none."""
