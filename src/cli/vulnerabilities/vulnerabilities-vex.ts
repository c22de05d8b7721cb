// Commands for VEX statements about vulnerabilities in an image, and for the signers whose statements are trusted.
import { readFile } from 'node:fs/promises'
import type { VexStatementJson } from '#gen/pinfold/control/scanning/v1/scan_reports_pb.ts'
import type { VexSignerJson } from '#gen/pinfold/control/scanning/v1/signers_pb.ts'
import { apiCommand } from '../framework/api-pages.ts'
import { usageError } from '../framework/cli-error.ts'
import { type Commands, outputOption } from '../framework/command.ts'
import { listCommand } from '../framework/list-command.ts'
import { endGrant, listGrants, requiredScopeOption, scopeOf, untilOf, untilOptions } from '../registry/rules.ts'
import { digestOf } from './scanned-image.ts'

const imageArgument = { name: '<image>', summary: 'Image: acme/app:1.0 or acme/app@sha256:…; default tag: latest' }

/** Maximum number of statements that the server lists for one image. */
const mostStatements = 5000

const list = listCommand({
  usual: mostStatements,
  details: `VEX statements come from OpenVEX and CSAF documents and from the analyses of CycloneDX. Import them with pinfold images import-scan,
or push them as referrers of the image, signed or not. A statement has no effect until you adopt it (pinfold vulnerabilities vex
adopt) or trust its signer (pinfold vulnerabilities vex trust).`,
  arguments: [imageArgument],
  options: [outputOption],
  async run(api, options) {
    const { repo, digest } = await digestOf(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/statements`
    const { items, more } = await api.selected<VexStatementJson>(path, 'statements', {})
    const none = `no ${options.skip === undefined ? '' : 'more '}VEX statements about this image`
    return {
      json: items,
      dense: true,
      text: items.length === 0 ? none : items.map(lineOf),
      more,
    }
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
}: VexStatementJson) {
  const why = [justification, text].filter(Boolean).join(', ')
  const of = products.length === 0 ? '' : ` of ${products.join(' ')}`
  const signed = signers.length === 0 ? '' : ' (signer was trusted at that time)'
  return `${uid}: ${vulnerability} ${status}${of}, by ${author || 'an unnamed author'}${signed}${why === '' ? '' : `: ${why}`}`
}

const [reasonOption, untilOption] = untilOptions(366)

const adopt = apiCommand({
  details: `Creates an accepted risk from the statement, with a reason and an end date; see pinfold vulnerabilities risks. Needs the capability
vuln.create in the repository. The status of the statement must be not_affected or fixed. The accepted risk applies only to the
packages of the statement.`,
  arguments: [imageArgument, { name: '<statement>', summary: 'Uid, as pinfold vulnerabilities vex list shows it' }],
  options: [
    { ...reasonOption!, summary: 'Reason' },
    untilOption!,
    { flags: '--package <purl>', summary: 'Only this package of the statement, such as pkg:apk/alpine/zlib' },
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
  details: `A vulnerability no longer counts in an image if a statement with this signature has the status not_affected or fixed. This includes
statements that were pushed before, unless the server had no support for signers then. Needs the capability vuln.create. Reports
of the past do not change.`,
  arguments: [{ name: '<name>', summary: 'Name of the signer, shown with ignored findings' }],
  options: [
    requiredScopeOption,
    { flags: '--key <file>', summary: 'File with the public key in PEM, such as cosign.pub', required: true },
    untilOption!,
    { flags: '--reason <text>', summary: 'Reason' },
    outputOption,
  ],
  check: untilOf,
  async run(api, options) {
    const publicKey = await keyIn(String(options.key))
    const scope = await scopeOf(api, options)
    const { name, reason = '' } = options
    const body = { name, reason, expireTime: untilOf(options), publicKey }
    const made = await api.call('POST', `${signerKind.path}/${scope}`, body)
    return { json: made, text: `${made.name} is trusted until ${made.expireTime}: ${made.uid}` }
  },
})

/** Maximum length of a key file. The API's limit is lower. */
const longest = 16_384

async function keyIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw usageError(`${file} cannot be read: ${error.message}`)
  })
  // Throws for a private key, which must not leave this machine.
  if (text.includes('PRIVATE KEY'))
    throw usageError(`nothing was sent, because ${file} contains a private key; give the file with the public key`)
  // Throws for a file that is no key, since the user may have named a secret file by mistake.
  if (!/-----BEGIN (?:RSA )?PUBLIC KEY-----/.test(text) || text.length > longest) {
    throw usageError(`${file} does not contain a public key in PEM, which begins with -----BEGIN PUBLIC KEY-----`)
  }
  return text
}

export const vulnerabilitiesVex: Commands = {
  list,
  adopt,
  signers: listGrants<VexSignerJson>({
    ...signerKind,
    head: ['UID', 'NAME', 'KEY', 'STATE', 'UNTIL', 'BY'],
    row: ({ uid, name, fingerprint, state, expireTime }, by) => {
      return [uid, name, fingerprint?.slice(0, 16), state?.toLowerCase(), expireTime, by]
    },
  }),
  trust,
  distrust: endGrant<VexSignerJson>(signerKind, {
    list: 'pinfold vulnerabilities vex signers',
    argument: 'Uid of the signer, as pinfold vulnerabilities vex signers shows it',
    reason: true,
    async text({ name, fingerprint }, api) {
      // Another signer with the same key may be trusted, and its statements still hide findings.
      const { items } = await api
        .list<VexSignerJson>(signerKind.path, signerKind.member, {})
        .catch(() => ({ items: [] }))
      const others = items.filter((one) => one.fingerprint === fingerprint).map(({ uid }) => uid)
      const also = others.length === 0 ? '' : `; its key is still trusted as ${others.join(', ')}`
      return `${name} is no longer trusted${also}`
    },
  }),
}
