# A cache of a slow origin gives back what it was given: hot, after it was
# taken down, and from the origin alone once all of it is written back.
dd if=/dev/zero of=/tmp/ssd bs=1M count=16 2> /dev/null
dd if=/dev/zero of=/tmp/hdd bs=1M count=64 2> /dev/null
ssd=$(losetup -f); losetup "$ssd" /tmp/ssd
hdd=$(losetup -f); losetup "$hdd" /tmp/hdd
table="0 131072 dss $ssd $hdd 128 1 writeback"
dd if=/dev/urandom of=/tmp/data bs=1M count=4 2> /dev/null

same()
{
	echo 3 > /proc/sys/vm/drop_caches
	dd if="$1" bs=64k count=64 2> /dev/null | cmp - /tmp/data
}

dmsetup create cache --table "$table"
dd if=/tmp/data of=/dev/mapper/cache bs=64k conv=fsync 2> /dev/null
same /dev/mapper/cache
dmsetup status cache
dmsetup remove cache
dmsetup create cache --table "$table"
same /dev/mapper/cache
dmsetup status cache
dmsetup remove cache
# All dirty chunks go out after a while without requests.
dmsetup create cache --table "0 131072 dss $ssd $hdd 128 3 writeback idle_ms 10"
sleep 5
dmsetup status cache
dmsetup remove cache
same "$hdd"
losetup -d "$ssd"
losetup -d "$hdd"
rm /tmp/ssd /tmp/hdd /tmp/data
