// Attacks without any rights: passwords, tokens, registrations, and pulls of public and private images.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { roleUids } from '../../support/pinfold.ts'
import { oneOf, type Random } from '../../support/random.ts'
import { registryClient } from '../../support/registry.ts'
import { mutate } from '../mutate.ts'
import type { Kinds } from './kinds.ts'
import { stranger } from './send.ts'
import { den, peopleAudience, type World } from './world.ts'

/** Largest size of all headers together. */
const longest = 12_000

export async function strangerKinds(world: World): Promise<Kinds> {
  const { acme, evil, open, issuer, send, url, operate } = world
  const { digest } = await registryClient(url, open.owner.registry).pushImage('public/tool', 'latest')
  const slow = await slowIdentities(world)
  const victim = (
    await operate(`/iam/v2/identities/${acme.uid}`, {
      name: 'guessed',
      claimMatch: { issuer: issuer.url, subject: 'guessed' },
    })
  ).uid as string
  const host = new URL(url).host
  const signed = await issuer.token({ sub: 'x', aud: url })
  const garbage = (random: Random): string => {
    const text = mutate(random, oneOf(random, [signed, evil.owner.api, evil.owner.registry, 'x'.repeat(longest)]))
    return text.replaceAll(/[^\x21-\x7e]/g, 'x').slice(0, longest)
  }
  /** Client address: one of many, or always the same one. */
  const from = (random: Random): string => (random.below(2) === 0 ? den : stranger(random))
  const exchange = async (token: string, identity: string, random: Random): Promise<number> => {
    const search = new URLSearchParams({ aud: url, ...(identity === '' ? {} : { identity }) })
    return (await send({ method: 'POST', path: `/sts/exchange?${search}`, token, from: from(random) })).status
  }
  return {
    'passwords at /token': {
      every: 50,
      async attack(random) {
        const user = oneOf(random, [victim, acme.owner.uid, '_token', 'admin', `${acme.uid}/0000000000000000`])
        const basic = `Basic ${Buffer.from(`${user}:${garbage(random)}`)
          .toString('base64')
          .slice(0, longest)}`
        const path = `/token?service=${host}&scope=repository:acme/app-1:pull,push`
        return (await send({ path, headers: { authorization: basic }, from: from(random) })).status
      },
    },
    'tokens that take long': {
      every: 100,
      async attack(random) {
        const text = oneOf(random, ['a', 'ab', '/', '0']).repeat(1 + random.below(3000))
        const claims = { sub: `${text}!`, claim: Array.from({ length: 20 }, () => text.slice(0, 100)), aud: url }
        const iss = random.below(4) === 0 ? { iss: `${issuer.url}/${text.slice(0, 2000)}` } : {}
        return exchange(await issuer.token({ ...claims, ...iss }), oneOf(random, slow), random)
      },
    },
    'garbage tokens': {
      every: 50,
      async attack(random) {
        const path = oneOf(random, [
          '/iam/v2/groups',
          '/v2/acme/app-1/manifests/v1',
          `/registry/v2/repos/${acme.uid}`,
          '/v2/',
          '/events/v2/stream',
        ])
        return (await send({ path, token: garbage(random), from: from(random) })).status
      },
    },
    'garbage exchanges': {
      every: 100,
      attack: (random) => exchange(garbage(random), oneOf(random, ['', victim, acme.uid, 'x']), random),
    },
    registrations: {
      every: 500,
      async attack(random) {
        const token = await issuer.token({
          sub: `person-${random.below(1e9)}`,
          aud: oneOf(random, [peopleAudience, 'other']),
          name: oneOf(random, ['Jane', 'x'.repeat(5000), '\u202e\0<script>']),
          email: 'a@b.example',
        })
        const body = oneOf(random, [{}, { inviteCode: 'x'.repeat(100_000) }, { inviteCode: '' }])
        return (await send({ method: 'POST', path: '/auth/v1/register', token, body, from: from(random) })).status
      },
    },
    'pulls of what is open': {
      every: 10,
      atOnce: 8,
      async attack(random) {
        const token =
          pullToken ||
          (await send({ path: `/token?service=${host}&scope=repository:public/tool:pull`, from: den })).json.token
        pullToken = String(token)
        const path = `/v2/public/tool/manifests/${oneOf(random, ['latest', digest])}`
        const { status } = await send({ path, token: pullToken, from: stranger(random) })
        if (status === 401) pullToken = ''
        return status
      },
    },
    'pulls that are refused': {
      every: 50,
      async attack(random) {
        const name = `acme/${oneOf(random, ['app-1', `a${random.below(1e9)}`, `${'x/'.repeat(60)}y`, mutate(random, 'team/web')])}`
        const path = `/v2/${encodeURI(name.toWellFormed())}/manifests/${oneOf(random, ['v1', digest, 'x'.repeat(128)])}`
        const token = random.below(2) === 0 ? pullToken || undefined : undefined
        return (await send({ path, token, from: from(random) })).status
      },
    },
    'open lists': {
      every: 100,
      async attack(random) {
        const ids = Array.from({ length: 1 + random.below(900) }, () => `CVE-2024-${1000 + random.below(60)}`).join(',')
        const path = oneOf(random, [
          `/advisory/v2/documents?cves=${ids}&page_size=200`,
          `/advisory/v2/metadata?ids=${ids}`,
          `/advisory/v2/documents?page_size=200&skip=${random.below(2 ** 31)}&order_by=${mutate(random, 'id desc')}`,
          `/advisory/v2/documents?page_token=${encodeURIComponent(mutate(random, signed).toWellFormed().slice(0, 8000))}`,
        ])
        return (await send({ path: path.replaceAll(/[^\x21-\x7e]/g, 'x'), from: from(random) })).status
      },
    },
  }
}

let pullToken = ''

/** Identities of the hostile tenant with the largest allowed patterns. The issuer of one of them never answers. */
async function slowIdentities({ evil, issuer }: World): Promise<string[]> {
  const silent = createServer(() => {})
    .listen(0, '127.0.0.1')
    .unref()
  await once(silent, 'listening')
  const silentUrl = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`
  const patterns = [
    '(?:a|b|ab)*(?:a|ab|b)*c',
    '(?:a?){400}a{400}',
    '(?:.*/){100}x',
    '(?:[^0]*0){200}y',
    '(?:a+)+b',
    '.*.*.*.*.*x',
  ]
  const matches = [
    ...patterns.map((subjectPattern) => ({ issuer: issuer.url, subjectPattern })),
    ...patterns.map((claim) => ({ issuer: issuer.url, subjectPattern: '.*', claimPatterns: { claim } })),
    ...patterns.map((pattern) => ({
      issuerPattern: `http://127\\.0\\.0\\.1:[0-9]+/?${pattern}`,
      subjectPattern: '.*',
    })),
    { issuer: silentUrl, subjectPattern: '.*' },
  ]
  const uids: string[] = []
  for (const [i, claimMatch] of matches.entries()) {
    const { status, json } = await evil.owner.call('POST', `/iam/v2/identities/${evil.uid}`, {
      name: `slow-${i}`,
      claimMatch,
    })
    if (status === 200) uids.push(String(json.uid))
  }
  await evil.owner.call('POST', `/iam/v2/roleBindings/${evil.uid}`, { identityUid: uids[0], roleUid: roleUids.viewer })
  return uids
}
