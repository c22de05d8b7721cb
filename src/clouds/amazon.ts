// AWS: AssumeRoleWithWebIdentity of the Security Token Service.
import { type Asking, answerOf, ask, form, requireText } from './ask.ts'
import { type CloudAccount, type CloudAnswer, checker } from './cloud-account.ts'

const name = 'AWS'
/** Audience that the identity provider in the account lists. */
const audience = 'sts.amazonaws.com'

export function checkAmazon(asking: Asking, { account }: CloudAccount & { cloud: 'amazon' }): Promise<CloudAnswer> {
  return answerOf(async () => {
    const { amazonSts } = asking.endpoints
    const role = `arn:${partitionOf(amazonSts)}:iam::${account}:role/pinfold-${checker}`
    const body = new URLSearchParams({
      Action: 'AssumeRoleWithWebIdentity',
      Version: '2011-06-15',
      RoleArn: role,
      RoleSessionName: `pinfold-${checker}`,
      WebIdentityToken: await asking.assert({ subject: `${checker}:${asking.group}`, audience }),
      // The least that AWS allows.
      DurationSeconds: '900',
    })
    const sent = { url: `${amazonSts}/`, headers: form, body: body.toString() }
    const answer = await ask(asking, name, sent, (xml) => {
      const [code, message] = [textOf(xml, 'Code'), textOf(xml, 'Message')]
      return code && `${code}: ${message ?? ''}`
    })
    requireText(textOf(answer, 'AccessKeyId'), name, 'credentials')
  })
}

/** The text of the first element of that name, in a document of AWS's own making. */
function textOf(xml: string, element: string): string | undefined {
  return new RegExp(`<${element}>([^<]*)</${element}>`).exec(xml)?.[1]
}

/** The clouds of China and of the US government name their roles otherwise. */
function partitionOf(sts: string): string {
  const { hostname } = new URL(sts)
  if (hostname.endsWith('.amazonaws.com.cn')) return 'aws-cn'
  return /^sts\.us-gov-/.test(hostname) ? 'aws-us-gov' : 'aws'
}
