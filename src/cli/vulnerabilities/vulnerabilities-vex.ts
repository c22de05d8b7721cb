// What others say was made of the vulnerabilities in an image.
import { momentOf } from '../registry/image-options.ts'
import { printMade } from '../registry/place-options.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import { type Command, type Commands, exitCodes, outputOption } from '../shape/command.ts'
import { jsonText, plain } from '../shape/plain-text.ts'
import { digestOf } from './scanned-image.ts'
import { distrust, signers, trust } from './vulnerabilities-signers.ts'

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
type Risk = { uid: string; vulnerability: string; expireTime: string }

const imageArgument = { name: '<image>', summary: 'acme/app:1.0 or acme/app@sha256:…' }

/** The server lists no more of one image. */
const mostStatements = 5000

const list: Command = {
  details: `Documents in OpenVEX and CSAF, and the analyses of CycloneDX, come as reports do: by pinfold import scan-report, or pushed as a manifest that
refers to the image, signed or not. They hide nothing until they are adopted, or whoever has signed them is trusted.`,
  arguments: [imageArgument],
  options: [outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const { repo, digest } = await digestOf(api, String(options.image))
    const path = `/registry/v2/repos/${repo}/digests/${digest}/statements`
    const { items: listed } = await api.list<Statement>(path, 'statements', {}, mostStatements)
    if (options.output === 'json') terminal.print(jsonText(listed))
    else if (listed.length === 0) terminal.print('nothing is said of the image')
    else for (const one of listed) terminal.print(plain(lineOf(one)))
    return exitCodes.ok
  },
}

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

const adopt: Command = {
  details: `It is a risk that is accepted, for a reason and until a day: see pinfold vulnerabilities risks. It takes the capability vuln.create
in the repo. Only what is said to be not_affected or fixed can be adopted, and of no more than it is said of.`,
  arguments: [imageArgument, { name: '<statement>', summary: 'As pinfold vulnerabilities vex list shows it' }],
  options: [
    { flags: '--reason <text>', summary: 'Why it is believed', required: true },
    { flags: '--until <time>', summary: 'A day such as 2026-12-31, or a time; at most 366 days ahead', required: true },
    { flags: '--package <purl>', summary: 'Which of the packages, where it is about several' },
    outputOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const expireTime = momentOf(String(options.until), '--until')
    const api = await apiReader(terminal, options)
    const { repo, digest } = await digestOf(api, String(options.image))
    const { statement, reason, package: purl } = options
    const made = (await api.call('POST', `/registry/v2/riskAcceptances/${repo}`, {
      ...{ statement, digest, reason, expireTime },
      ...(purl === undefined ? {} : { package: purl }),
    })) as Risk
    return printMade(terminal, options, made, `adopted ${made.vulnerability} until ${made.expireTime}: ${made.uid}`)
  },
}

export const vulnerabilitiesVex: Commands = { list, adopt, signers, trust, distrust }
