"""swift-dss: OpenStack Swift with classes of data: SSD, HDD and S3."""
