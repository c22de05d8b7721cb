// VEX statements about the vulnerabilities in an image, and the signers who are trusted with them.
import { readFile } from 'node:fs/promises'
import { apiCommand } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { endGrant, listGrants, placeOptions, requiredPlaceOf, untilOf, untilOptions } from '../registry/rules.ts'
import { digestOf } from './scanned-image.ts'

type Statement = {
  uid: string
  vulnerability: string
  status: string
  justification?: string
  text?: string
  products?: string[]
  author?: string
  signers?: string[]
}
type Signer = { uid: string; name: string; fingerprint: string; state: string; expireTime: string; actor: string }

const imageArgument = { name: '<image>', summary: 'acme/app:1.0 or acme/app@sha256:…' }

/** The server lists no more of one image. */
const mostStatements = 5000

const list = apiCommand({
  details: `Documents in OpenVEX and CSAF, and the analyses of CycloneDX, come as reports do: by pinfold import scan-report, or pushed as a manifest that
refers to the image, signed or not. They hide nothing until they are adopted, or whoever has signed them is trusted.`,
  arguments: [imageArgument],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/statements`
    const { items } = await api.list<Statement>(path, 'statements', {}, mostStatements)
    return { json: items, dense: true, text: items.length === 0 ? 'nothing is said of the image' : items.map(lineOf) }
  },
})

function lineOf({
  uid,
  vulnerability,
  status,
  justification = '',
  text = '',
  products = [],
  author = '',
  signers = [],
}: Statement) {
  const why = [justification, text].filter(Boolean).join(', ')
  const of = products.length === 0 ? '' : ` of ${products.join(' ')}`
  const signed = signers.length === 0 ? '' : ' (signed by who was trusted then)'
  return `${uid}: ${vulnerability} ${status}${of}, says ${author || 'somebody'}${signed}${why === '' ? '' : `: ${why}`}`
}

const [reasonOption, untilOption] = untilOptions(366)

const adopt = apiCommand({
  details: `It is a risk that is accepted, for a reason and until a day: see pinfold vulnerabilities risks. It takes the capability vuln.create
in the repo. Only what is said to be not_affected or fixed can be adopted, and of no more than it is said of.`,
  arguments: [imageArgument, { name: '<statement>', summary: 'As pinfold vulnerabilities vex list shows it' }],
  options: [
    { ...reasonOption!, summary: 'Why it is believed' },
    untilOption!,
    { flags: '--package <purl>', summary: 'Which of the packages, where it is about several' },
    outputOption,
  ],
  check: untilOf,
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const { statement, reason, package: purl } = options
    const body = { statement, digest, reason, expireTime: untilOf(options), package: purl }
    const made = await api.call('POST', `/registry/v2/riskAcceptances/${repo}`, body)
    return { json: made, text: `adopted ${made.vulnerability} until ${made.expireTime}: ${made.uid}` }
  },
})

const signerKind = { path: '/registry/v2/vexSigners', member: 'vexSigners' }

const trust = apiCommand({
  details: `What a statement that is signed with it says to be not_affected or fixed in an image does not count there, also where it was
pushed before, to a server that knows of signers. It takes the capability vuln.create. Past reports stay as they were.`,
  arguments: [{ name: '<name>', summary: 'Who that is, as it is shown with what is hidden' }],
  options: [
    ...placeOptions,
    { flags: '--key <file>', summary: 'The public key in PEM, such as cosign.pub', required: true },
    untilOption!,
    { flags: '--reason <text>', summary: 'Why' },
    outputOption,
  ],
  check: untilOf,
  async run(api, options) {
    const publicKey = await keyIn(String(options.key))
    const place = await requiredPlaceOf(api, options)
    const { name, reason = '' } = options
    const body = { name, reason, expireTime: untilOf(options), publicKey }
    const made = await api.call('POST', `${signerKind.path}/${place}`, body)
    return { json: made, text: `${made.name} is trusted until ${made.expireTime}: ${made.uid}` }
  },
})

/** More characters than the API takes. */
const longest = 16_384

async function keyIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw usageError(`${file} cannot be read: ${error.message}`)
  })
  // A private key must not leave this machine.
  if (text.includes('PRIVATE KEY')) throw usageError(`${file} is a private key; give the public one`)
  // Nor must a file that was named by mistake.
  if (!/-----BEGIN (?:RSA )?PUBLIC KEY-----/.test(text) || text.length > longest) {
    throw usageError(`${file} is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----`)
  }
  return text
}

export const vulnerabilitiesVex: Commands = {
  list,
  adopt,
  signers: listGrants<Signer>({
    ...signerKind,
    head: ['UID', 'NAME', 'KEY', 'STATE', 'UNTIL', 'BY'],
    row: ({ uid, name, fingerprint, state, expireTime }, by) => [
      ...[uid, name, fingerprint.slice(0, 16), state.toLowerCase()],
      ...[expireTime, by],
    ],
  }),
  trust,
  distrust: endGrant<Signer>(signerKind, {
    list: 'pinfold vulnerabilities vex signers',
    argument: 'Of the signer, as signers shows it',
    reason: true,
    async text({ name, fingerprint }, api) {
      // The same key can be trusted more than once, and then it still hides findings.
      const { items } = await api.list<Signer>(signerKind.path, signerKind.member, {}).catch(() => ({ items: [] }))
      const others = items.filter((one) => one.fingerprint === fingerprint).map(({ uid }) => uid)
      const also = others.length === 0 ? '' : `; its key still is as ${others.join(', ')}`
      return `${name} is trusted no longer${also}`
    },
  }),
}
