// Email domains of an organization: users with such addresses find its sign-in by their address.
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { EmailDomain, Group } from '../../data/types.ts'
import { ActButton, DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Shown } from '../../ui/states.tsx'
import { Badge, Code } from '../../ui/text.tsx'
import { words } from '../../words.ts'

const root = '/control/v1/emailDomains'

export function EmailDomains({ group }: { group: Group }) {
  const read = useLoad(`email domains ${group.uid}`, (signal) =>
    readPage<EmailDomain>(`${root}/${group.uid}`, 'emailDomains', { size: 100, signal }),
  )
  const make = async ({ domain }: Record<string, string>) => {
    await ask('POST', `${root}/${group.uid}`, { body: { domain } })
    read.reload()
  }
  return (
    <>
      <Shown of={read}>
        {(page) => (
          <>
            <Cut of={page} />
            {page.items.length === 0 && <Empty>{words.noEmailDomains}</Empty>}
            {page.items.map((one) => (
              <DomainView key={one.uid} one={one} onChange={read.reload} />
            ))}
          </>
        )}
      </Shown>
      {can('identity_providers.create', group.uid) && (
        <details>
          <summary>{words.newEmailDomain}</summary>
          <Form
            submit={words.createEmailDomain}
            onSubmit={make}
            fields={[{ name: 'domain', label: words.emailDomain, hint: words.emailDomainHint }]}
          />
        </details>
      )}
    </>
  )
}

function DomainView({ one, onChange }: { one: EmailDomain; onChange: () => void }) {
  const { uid, domain, verified, recordName, recordValue } = one
  const verify = async () => {
    await ask('POST', `${root}/${uid}:verify`, { body: {} })
    onChange()
  }
  return (
    <section aria-label={domain}>
      <h3>
        <bdi>{domain}</bdi>{' '}
        <Badge kind={verified ? 'good' : 'warn'}>{verified ? words.isVerified : words.isNotVerified}</Badge>
      </h3>
      {!verified && (
        <>
          <p>{words.verifyEmailDomainText}</p>
          <Code text={recordName} label={words.copyRecordName} />
          <Code text={recordValue} label={words.copyRecordValue} />
        </>
      )}
      <p>
        {!verified && can('identity_providers.update', uid) && (
          <ActButton act={verify}>{words.verifyEmailDomain}</ActButton>
        )}{' '}
        {can('identity_providers.delete', uid) && (
          <DangerButton
            button={words.delete}
            label={words.deleteEmailDomainOf(domain)}
            title={words.deleteEmailDomainOf(domain)}
            text={words.deleteEmailDomainText}
            act={async () => {
              await ask('DELETE', `${root}/${uid}`)
              onChange()
            }}
          />
        )}
      </p>
    </section>
  )
}
