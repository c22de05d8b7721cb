// Signed in-toto statements, as cosign makes them. They can be pushed in each layout that cosign has used.
import { constants, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import type { Json } from './pinfold.ts'
import { type RegistryClient, types } from './registry.ts'

export type Keys = { publicKey: KeyObject; privateKey: KeyObject; isPss?: boolean }
export const keysOf: Record<string, () => Keys> = {
  ecdsa: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ed25519: () => generateKeyPairSync('ed25519'),
  rsa: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  'rsa with pss': () => ({ ...generateKeyPairSync('rsa', { modulusLength: 2048 }), isPss: true }),
}
export const pemOf = ({ publicKey }: Keys): string => publicKey.export({ type: 'spki', format: 'pem' }).toString()

export const inTotoType = 'application/vnd.in-toto+json'
export const openVexPredicate = 'https://openvex.dev/ns/v0.2.0'

export const statementAbout = (digest: string, predicate: Json, predicateType = openVexPredicate): Json => ({
  ...{ _type: 'https://in-toto.io/Statement/v0.1', predicateType, predicate },
  subject: [{ name: 'app', digest: { sha256: digest.replace('sha256:', '') } }],
})

const algorithmOf = ({ asymmetricKeyType }: KeyObject) => (asymmetricKeyType === 'ed25519' ? null : 'sha256')

/** `asType` is the payload type that is signed. */
export function envelopeOf(statement: Json, keys: readonly Keys[], asType = inTotoType): Json {
  const payload = Buffer.from(JSON.stringify(statement))
  const pae = Buffer.concat([Buffer.from(`DSSEv1 ${asType.length} ${asType} ${payload.length} `), payload])
  return {
    payloadType: inTotoType,
    payload: payload.toString('base64'),
    signatures: keys.map(({ privateKey, isPss }) => ({
      keyid: '',
      sig: sign(algorithmOf(privateKey), pae, {
        key: createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' })),
        ...(isPss && { padding: constants.RSA_PKCS1_PSS_PADDING }),
      }).toString('base64'),
    })),
  }
}

const bundleType = 'application/vnd.dev.sigstore.bundle.v0.3+json'
const dsseType = 'application/vnd.dsse.envelope.v1+json'

/** Pushes a Sigstore bundle as a referrer of the image. */
export function pushBundle(client: RegistryClient, repo: string, digest: string, envelope: Json): Promise<string> {
  const bundle = { mediaType: bundleType, verificationMaterial: { publicKey: { hint: '' } }, dsseEnvelope: envelope }
  const annotations = {
    'dev.sigstore.bundle.content': 'dsse-envelope',
    'dev.sigstore.bundle.predicateType': openVexPredicate,
  }
  return refer(client, repo, digest, { type: bundleType, content: bundle, annotations })
}

/** Pushes a referrer of the image whose manifest contains the envelope itself. */
export const pushEnvelope = (client: RegistryClient, repo: string, digest: string, envelope: Json) =>
  refer(client, repo, digest, { type: dsseType, content: envelope, annotations: {} })

/** Pushes an in-toto statement as a referrer of the image, with or without an envelope. */
export const pushInToto = (client: RegistryClient, repo: string, digest: string, content: Json) =>
  refer(client, repo, digest, {
    type: inTotoType,
    content,
    annotations: { 'in-toto.io/predicate-type': openVexPredicate },
  })

type Referred = { type: string; content: Json; annotations: Record<string, string> }

export async function refer(
  client: RegistryClient,
  repo: string,
  digest: string,
  { type, content, annotations }: Referred,
): Promise<string> {
  const layer = await client.pushBlob(repo, JSON.stringify(content), type)
  const config = await client.pushBlob(repo, '{}', types.empty)
  const subject = { mediaType: types.image, digest, size: 1000 }
  const manifest = { schemaVersion: 2, mediaType: types.image, artifactType: type, config, layers: [layer] }
  return (await client.pushManifest(repo, { ...manifest, annotations, subject })).digest
}

/** Pushes a manifest under the tag that cosign uses for the attestations of an image. */
export async function pushAttestations(
  client: RegistryClient,
  repo: string,
  digest: string,
  envelopes: readonly Json[],
  predicateType = openVexPredicate,
): Promise<string> {
  const layers = []
  for (const envelope of envelopes) {
    const layer = await client.pushBlob(repo, JSON.stringify(envelope), dsseType)
    layers.push({ ...layer, annotations: { predicateType, 'dev.cosignproject.cosign/signature': '' } })
  }
  const config = await client.pushBlob(repo, '{"architecture":"","os":""}', types.config)
  const manifest = { schemaVersion: 2, mediaType: types.image, config, layers }
  return (await client.pushManifest(repo, manifest, `${digest.replace(':', '-')}.att`)).digest
}
