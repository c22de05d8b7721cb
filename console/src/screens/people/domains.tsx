// Email domains of an organization: users with such addresses find its sign-in by their address.
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import type { EmailDomain, Group } from '../../data/types.ts'
import { ActButton, DangerButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Cut, Empty, Shown } from '../../ui/states.tsx'
import { Badge, Code } from '../../ui/text.tsx'
import { peopleWords } from '../../words/people.ts'
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
            {page.items.length === 0 && <Empty>{peopleWords.noEmailDomains}</Empty>}
            {page.items.map((one) => (
              <DomainView key={one.uid} one={one} onChange={read.reload} />
            ))}
          </>
        )}
      </Shown>
      {can('identity_providers.create', group.uid) && (
        <details>
          <summary>{peopleWords.newEmailDomain}</summary>
          <Form
            submit={peopleWords.createEmailDomain}
            onSubmit={make}
            fields={[{ name: 'domain', label: peopleWords.emailDomain, hint: peopleWords.emailDomainHint }]}
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
        <Badge kind={verified ? 'good' : 'warn'}>{verified ? peopleWords.isVerified : peopleWords.isNotVerified}</Badge>
      </h3>
      {!verified && (
        <>
          <p>{peopleWords.verifyEmailDomainText}</p>
          <Code text={recordName} label={peopleWords.copyRecordName} />
          <Code text={recordValue} label={peopleWords.copyRecordValue} />
        </>
      )}
      <p>
        {!verified && can('identity_providers.update', uid) && (
          <ActButton act={verify}>{peopleWords.verifyEmailDomain}</ActButton>
        )}{' '}
        {can('identity_providers.delete', uid) && (
          <DangerButton
            button={words.delete}
            label={peopleWords.deleteEmailDomainOf(domain)}
            title={peopleWords.deleteEmailDomainOf(domain)}
            text={peopleWords.deleteEmailDomainText}
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
