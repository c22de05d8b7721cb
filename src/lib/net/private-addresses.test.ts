import assert from 'node:assert/strict'
import { test } from 'node:test'
import { privateAddresses } from './private-addresses.ts'

test('allows private addresses for a host name, but not for names below or above it', () => {
  const list = privateAddresses(['idp.corp.internal'])
  assert.equal(list.has('idp.corp.internal', '10.2.3.4'), true)
  assert.equal(list.has('IDP.corp.internal.', '192.168.0.1'), true)
  assert.equal(list.has('idp.corp.internal', '::1'), true)
  for (const host of ['a.idp.corp.internal', 'corp.internal', 'idp.corp.internal.evil', '10.2.3.4', '']) {
    assert.equal(list.has(host, '10.2.3.4'), false, host)
  }
})

test('an address range is allowed under any host name', () => {
  const list = privateAddresses(['10.2.0.0/16', '192.168.7.7', 'fd12::/16'])
  for (const address of ['10.2.0.0', '10.2.255.255', '192.168.7.7', 'fd12::5']) {
    assert.equal(list.has('any.example', address), true, address)
  }
  for (const address of ['10.3.0.0', '192.168.7.8', 'fd13::1', '::ffff:10.2.0.1', '10.2', 'nonsense', '']) {
    assert.equal(list.has('any.example', address), false, address)
  }
})

test('allows link-local addresses, such as cloud metadata, only by an entry for that range', () => {
  const metadata = ['169.254.169.254', '168.63.129.16', '100.100.100.200', 'fd00:ec2::254', 'fe80::1']
  const wide = privateAddresses(['metadata.internal', '0.0.0.0/0', '100.64.0.0/10', '::/0', 'fd00::/8', '169.0.0.0/8'])
  for (const address of metadata) assert.equal(wide.has('metadata.internal', address), false, address)
  const own = privateAddresses(['169.254.169.254', 'fe80::/10'])
  assert.equal(own.has('any.example', '169.254.169.254'), true)
  assert.equal(own.has('any.example', 'fe80::1'), true)
  assert.equal(own.has('any.example', '169.254.169.253'), false)
})

test('treats an IPv6 address that embeds a link-local IPv4 address as link-local', () => {
  const wide = privateAddresses([
    'nat.internal',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '::/0',
    '2002::/16',
    '::ffff:0:0/96',
  ])
  const leading = [
    '::ffff:169.254.169.254',
    '::FFFF:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '64:ff9b::169.254.169.254',
    '0064:ff9b:0:0:0:0:a83f:8110',
    '64:ff9b::6464:64c8',
    '2002:a9fe:a9fe::1',
    // By prefixes of 96, 48, 56 and 64 bits.
    '64:ff9b:1:2:3:4:a9fe:a9fe',
    '64:ff9b:1:a9fe:a9:fe00::',
    '64:ff9b:1:ffa9:fe:a9fe::',
    '64:ff9b:1:ffff:a9:fea9:fe00:0',
  ]
  for (const address of leading) {
    assert.equal(wide.has('nat.internal', address), false, address)
    assert.equal(
      privateAddresses(['169.254.0.0/16', '168.63.129.16', '100.100.100.200']).has('x', address),
      true,
      address,
    )
    assert.equal(privateAddresses([address]).has('x', address), true, address)
  }
  for (const address of [
    '64:ff9b::a02:304',
    '64:ff9b:1::a02:304',
    '::ffff:10.2.3.4',
    '2002:a02:304::1',
    'fd12::a9fe:a9fe',
  ]) {
    assert.equal(wide.has('nat.internal', address), true, address)
    assert.equal(privateAddresses(['169.254.169.254']).has('x', address), false, address)
  }
  assert.equal(privateAddresses(['fe80::/10']).has('x', 'fe80::1%eth0'), true)
})
