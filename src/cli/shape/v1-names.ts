// The members of version 1, which the JSON of lists has: scripts that know other clients read these.
const common: Readonly<Record<string, string>> = { uid: 'id', createTime: 'createdAt', updateTime: 'updatedAt' }

/** An item of version 2 with the names of version 1; `more` are those of one resource. What has no name there keeps its own. */
export function v1(more: Readonly<Record<string, string>> = {}): (item: object) => object {
  const names = { ...common, ...more }
  return (item) => Object.fromEntries(Object.entries(item).map(([name, value]) => [names[name] ?? name, value]))
}
