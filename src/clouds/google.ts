// Google Cloud: Workload Identity Federation, then impersonation of a service account of the project.
import { type Asking, answerOf, ask, json, memberOf, requireText } from './ask.ts'
import { type CloudAccount, type CloudAnswer, checker } from './cloud-account.ts'

const name = 'Google Cloud'
const scope = 'https://www.googleapis.com/auth/cloud-platform'

export function checkGoogle(asking: Asking, account: CloudAccount & { cloud: 'google' }): Promise<CloudAnswer> {
  return answerOf(async () => {
    const { googleSts, googleIam } = asking.endpoints
    const pool = `projects/${account.projectNumber}/locations/global/workloadIdentityPools/pinfold-pool`
    const provider = `//iam.googleapis.com/${pool}/providers/pinfold-provider`
    const exchange = {
      grantType: 'urn:ietf:params:oauth:grant-type:token-exchange',
      audience: provider,
      scope,
      requestedTokenType: 'urn:ietf:params:oauth:token-type:access_token',
      subjectTokenType: 'urn:ietf:params:oauth:token-type:jwt',
      // A provider without a list of audiences expects its own name.
      subjectToken: await asking.assert({ subject: `${checker}:${asking.group}`, audience: `https:${provider}` }),
    }
    const sent = { url: `${googleSts}/v1/token`, headers: json, body: JSON.stringify(exchange) }
    const federated = requireText(memberOf(await ask(asking, name, sent, explain), 'access_token'), name, 'a token')

    const email = serviceAccountOf(account.projectId)
    const impersonation = {
      url: `${googleIam}/v1/projects/-/serviceAccounts/${encodeURIComponent(email)}:generateAccessToken`,
      headers: { ...json, authorization: `Bearer ${federated}` },
      body: JSON.stringify({ scope: [scope], lifetime: '300s' }),
    }
    requireText(memberOf(await ask(asking, name, impersonation, explain), 'accessToken'), name, 'a token')
  })
}

/** A project of a domain, `example.com:project`, has the domain in the address of its accounts. */
function serviceAccountOf(projectId: string): string {
  const [project, domain] = projectId.split(':').reverse()
  return `pinfold-${checker}@${domain ? `${project}.${domain}` : project}.iam.gserviceaccount.com`
}

/** The token service answers in the format of OAuth, the others in that of Google's APIs. */
function explain(body: string): string | undefined {
  const error = memberOf(body, 'error')
  if (typeof error === 'string') return `${error}: ${String(memberOf(body, 'error_description') ?? '')}`
  const status = memberOf(body, 'error', 'status')
  return typeof status === 'string' ? `${status}: ${String(memberOf(body, 'error', 'message') ?? '')}` : undefined
}
