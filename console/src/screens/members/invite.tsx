// Invitation of people by email address: each gets a link, which is shown once.
import { useState } from 'preact/hooks'
import { ask, Refusal } from '../../data/api.ts'
import type { Group, Invite } from '../../data/types.ts'
import { Dialog, Form } from '../../ui/form.tsx'
import { Icon } from '../../ui/icon.tsx'
import { useLoad } from '../../ui/load.ts'
import { Note, Shown } from '../../ui/states.tsx'
import { Code } from '../../ui/text.tsx'
import { memberWords } from '../../words/members.ts'
import { readRoles } from '../people/roles.ts'
import { defaultRole, RoleChoice, readScopes, scopeField } from './role-choice.tsx'

type Props = { group: Group; organization: string; onMade: () => void }
type Link = { email: string; link: string }

export function InviteButton(props: Props) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        <Icon name="add" />
        {memberWords.inviteMembers}
      </button>
      {isOpen && <InviteDialog {...props} onClose={() => setOpen(false)} />}
    </>
  )
}

const daySeconds = 86_400

function InviteDialog({ group, organization, onMade, onClose }: Props & { onClose: () => void }) {
  const [links, setLinks] = useState<readonly Link[]>([])
  const [chosen, setRole] = useState<string>()
  const read = useLoad(`invite ${group.uid}`, async (signal) => {
    const [roles, scopes] = await Promise.all([readRoles(organization, signal), readScopes(group, signal)])
    return { roles, scopes }
  })
  const invite = async (roleUid: string, { emails = '', scope, days }: Record<string, string>) => {
    const addresses = emails.split(/[\s,;]+/).filter((one) => one !== '')
    const bad = addresses.find((one) => !/^[^@\s]+@[^@\s]+$/.test(one))
    if (bad !== undefined) throw new Refusal(400, memberWords.badEmail(bad))
    const made: Link[] = []
    for (const email of addresses.length > 0 ? addresses : ['']) {
      const body = { roleUid, ...(email && { email }), ttl: `${Number(days) * daySeconds}s`, singleUse: email !== '' }
      const { link } = await ask<Invite>('POST', `/iam/v2/groupInvites/${scope || group.uid}`, { body })
      made.push({ email, link })
      setLinks([...made])
    }
    onMade()
  }
  return (
    <Dialog title={memberWords.inviteTo(group.name)} onClose={onClose}>
      {links.length > 0 ? (
        <>
          <Note kind="good">{memberWords.linksOnce}</Note>
          {links.map(({ email, link }) => (
            <div key={link}>
              <p>
                <bdi>{memberWords.linkFor(email)}</bdi>
              </p>
              <Code text={link} label={memberWords.copyLinkFor(email)} />
            </div>
          ))}
        </>
      ) : (
        <Shown of={read}>
          {({ roles, scopes }) => {
            const role = chosen ?? defaultRole(roles)
            return (
              <Form
                submit={memberWords.createLinks}
                onSubmit={(values) => invite(role, values)}
                fields={[
                  {
                    name: 'emails',
                    label: memberWords.emails,
                    hint: memberWords.emailsHint,
                    type: 'lines',
                    isOptional: true,
                  },
                  ...scopeField({ scopes }),
                  {
                    name: 'days',
                    label: memberWords.expiresIn,
                    type: 'select',
                    value: '7',
                    options: Object.entries(memberWords.days).map(([value, label]) => ({ value, label })),
                  },
                ]}
              >
                <RoleChoice roles={roles} value={role} onChoose={setRole} />
                <p class="hint">{memberWords.inviteText}</p>
              </Form>
            )
          }}
        </Shown>
      )}
    </Dialog>
  )
}
