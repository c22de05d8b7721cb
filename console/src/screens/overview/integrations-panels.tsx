// Mirrors whose last check failed, and webhooks whose deliveries fail.
import { paths } from '../../app/paths.ts'
import { ask } from '../../data/api.ts'
import { readPage } from '../../data/list.ts'
import { namesOfRepo } from '../../data/names.ts'
import type { Follow, Subscription, SubscriptionSettings } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { useLoad } from '../../ui/load.ts'
import { Shown } from '../../ui/states.tsx'
import { Badge } from '../../ui/text.tsx'
import { overviewWords } from '../../words/overview.ts'
import { Panel } from './panel.tsx'

type Props = { names: readonly string[]; group: string }

const most = { mirrors: 200, failing: 5, webhooks: 20 }

export function MirrorsPanel({ names, group }: Props) {
  const read = useLoad(`failing mirrors ${group}`, async (signal) => {
    const path = `/registry/v2/follows/${group}`
    const { items, total = items.length } = await readPage<Follow>(path, 'follows', { size: most.mirrors, signal })
    const failing = items.filter(({ state }) => state === 'STATE_FAILED')
    const shown = failing.slice(0, most.failing)
    const named = shown.map(async (one) => ({ ...one, names: await namesOfRepo(one.repoUid) }))
    return { total, failing: failing.length, shown: await Promise.all(named) }
  })
  const link = { text: overviewWords.allMirrors, href: paths.group(names, 'integrations', 'mirrors') }
  return (
    <Panel title={overviewWords.mirrorsPanel} link={link}>
      <Shown of={read}>
        {({ total, failing, shown }) =>
          failing === 0 ? (
            <p class="dim">{overviewWords.mirrorsFine(total)}</p>
          ) : (
            <ul class="plain rows">
              {shown.map((one) => (
                <li key={one.repoUid}>
                  <span>
                    <a href={`${paths.repo(one.names)}?view=mirror`}>
                      <bdi>{one.names.slice(1).join('/') || one.names.join('/')}</bdi>
                    </a>
                    <span class="hint">
                      <bdi>{one.problem}</bdi>
                    </span>
                  </span>
                  <Badge kind="bad">{overviewWords.failingNow}</Badge>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Panel>
  )
}

export function WebhooksPanel({ names, group }: Props) {
  const read = useLoad(`failing webhooks ${group}`, async (signal) => {
    const query = { 'uidp.childrenOf': group }
    const path = '/events/v2/subscriptions'
    const { items } = await readPage<Subscription>(path, 'subscriptions', { size: most.webhooks, query, signal })
    const all = items.map(async (one) => {
      const settings = await ask<SubscriptionSettings>('GET', `${path}/${one.uid}/settings`, { signal })
      return { ...one, settings }
    })
    const found = await Promise.all(all)
    return { total: items.length, failing: found.filter(({ settings }) => settings.failures > 0) }
  })
  const link = { text: overviewWords.allWebhooks, href: paths.group(names, 'integrations', 'webhooks') }
  return (
    <Panel title={overviewWords.webhooksPanel} link={link}>
      <Shown of={read}>
        {({ total, failing }) =>
          failing.length === 0 ? (
            <p class="dim">{overviewWords.webhooksFine(total)}</p>
          ) : (
            <ul class="plain rows">
              {failing.slice(0, most.failing).map(({ uid, sink, settings }) => (
                <li key={uid}>
                  <span>
                    <bdi>{sink}</bdi>
                    <span class="hint">
                      {overviewWords.waiting(Number(settings.waiting))}{' '}
                      {settings.behindTime && (
                        <>
                          {overviewWords.oldest} <Ago at={settings.behindTime} />
                        </>
                      )}
                    </span>
                  </span>
                  <Badge kind="bad">{overviewWords.failingNow}</Badge>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Panel>
  )
}
