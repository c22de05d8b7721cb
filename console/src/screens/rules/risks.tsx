// Accepted risks, and trusted signers of VEX documents.
import { me } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import { nameOfIdentity } from '../../data/names.ts'
import type { Risk, Signer } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import type { Column } from '../../ui/table.tsx'
import { Badge, Digest, Time } from '../../ui/text.tsx'
import { riskWords } from '../../words/risks.ts'
import { words } from '../../words.ts'
import { type At, type Kind, Rules, ScopedList } from './scoped-list.tsx'
import { timeOf, untilField } from './until.ts'

export function Risks({ at, query }: { at: At; query: URLSearchParams }) {
  return (
    <Rules at={at} query={query} text={riskWords.risksText} needs="vuln_reports.list">
      {(asked) => (
        <>
          <ScopedList at={at} kind={{ ...risks, ...asked }} />
          <ScopedList at={at} kind={{ ...signers, ...asked }} />
        </>
      )}
    </Rules>
  )
}

const needs = { create: 'vuln.create', end: 'vuln.create' } as const
const risksPath = '/registry/v2/riskAcceptances'
const signersPath = '/registry/v2/vexSigners'

type Ending = { uid: string; reason: string; actor: string; state: string; expireTime: string; endTime: string }

function endColumns<T extends Ending>(): Column<T>[] {
  return [
    { title: words.reason, cell: ({ reason }) => <bdi>{reason}</bdi> },
    { title: riskWords.addedBy, cell: ({ actor }) => <Who uid={actor} /> },
    {
      title: words.to,
      cell: ({ state, expireTime, endTime }) => (
        <>
          <Time at={endTime || expireTime} /> {state !== 'LIVE' && <Badge kind="plain">{riskWords.ended}</Badge>}
        </>
      ),
    },
  ]
}

const endOf = (path: string, button: string, text: string) => ({
  ...{ button, text, isOver: ({ state }: Ending) => state !== 'LIVE' },
  send: async ({ uid }: { uid: string }) => {
    await ask('POST', `${path}/${uid}:revoke`, { body: {} })
  },
})

const risks: Kind<Risk> = {
  ...{ title: riskWords.risks, empty: riskWords.noRisks, path: risksPath, member: 'riskAcceptances', needs },
  nameOf: ({ vulnerability }) => vulnerability,
  columns: [
    { title: words.vulnerability, isHead: true, cell: ({ vulnerability }) => <bdi>{vulnerability}</bdi> },
    {
      title: riskWords.limitedTo,
      cell: ({ digest, package: named }) => (
        <>
          {digest && <Digest of={digest} />} <bdi>{named || (digest ? '' : riskWords.allImages)}</bdi>
        </>
      ),
    },
    ...endColumns<Risk>(),
  ],
  create: {
    summary: riskWords.newRisk,
    button: riskWords.acceptRisk,
    fields: () => [
      { name: 'vulnerability', label: words.vulnerability },
      { name: 'digest', label: riskWords.onlyInDigest, isOptional: true },
      { name: 'package', label: riskWords.onlyInPackage, hint: riskWords.packageHint, isOptional: true },
      { name: 'reason', label: words.reason },
      untilField(riskWords.atMost366Days),
    ],
    send: async (at, { expireTime, ...given }) => {
      await ask('POST', `${risksPath}/${at}`, { body: { ...given, expireTime: timeOf(expireTime) } })
    },
  },
  end: endOf(risksPath, words.revoke, riskWords.revokeRiskText),
}

const signers: Kind<Signer> = {
  ...{ title: riskWords.signers, empty: riskWords.noSigners, path: signersPath, member: 'vexSigners', needs },
  nameOf: ({ name }) => name,
  columns: [
    { title: words.name, isHead: true, cell: ({ name }) => <bdi>{name}</bdi> },
    {
      title: riskWords.key,
      cell: ({ publicKey, fingerprint }) => (
        <>
          {kindOf(publicKey)} <Digest of={`sha256:${fingerprint}`} />
        </>
      ),
    },
    ...endColumns<Signer>(),
  ],
  create: {
    summary: riskWords.newSigner,
    button: riskWords.trustSigner,
    fields: () => [
      { name: 'name', label: words.name, hint: riskWords.signerHint },
      { name: 'publicKey', label: riskWords.publicKey, hint: riskWords.publicKeyHint, type: 'lines' },
      { name: 'reason', label: words.reason, isOptional: true },
      untilField(riskWords.atMost366Days),
    ],
    send: async (at, { expireTime, ...given }) => {
      // A private key must not leave this browser.
      if (given.publicKey?.includes('PRIVATE KEY')) throw new Refusal(400, riskWords.privateKey)
      await ask('POST', `${signersPath}/${at}`, { body: { ...given, expireTime: timeOf(expireTime) } })
    },
  },
  end: endOf(signersPath, words.revoke, riskWords.revokeTrustText),
}

/** Type of a public key, from the first bytes of its DER form. The server writes each type in one form only. */
function kindOf(pem: string): string {
  const key = pem.split('\n')[1] ?? ''
  if (key.startsWith('MCowBQYDK2Vw')) return 'Ed25519'
  return /^M.kwEwYHKoZIzj0CAQ/.test(key) ? 'ECDSA P-256' : 'RSA'
}

/** Name of an identity. If the user cannot see the identity, the end of its uid. */
function Who({ uid }: { uid: string }) {
  const isMe = me.isOperator && uid === me.uid
  const read = useLoad(`identity ${uid}`, async () => (isMe ? words.operatorTitle : nameOfIdentity(uid)))
  return read.data ? <bdi title={uid}>{read.data}</bdi> : <code title={uid}>{uid.slice(-16)}</code>
}
