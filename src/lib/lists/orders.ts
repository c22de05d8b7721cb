// Sort orders that many lists have.

const uidOrder = { uid: { column: 'uid', sort: true } } as const
export const nameOrder = { name: { column: 'name', sort: true } } as const
export const createdOrders = { ...uidOrder, createTime: { column: 'create_time', sort: true } } as const

/** Orders of resources that can be updated. */
export const changedOrders = { ...createdOrders, updateTime: { column: 'update_time', sort: true } } as const

/** Orders of rules that have a name. */
export const ruleOrders = { ...changedOrders, ...nameOrder } as const

/** Orders of exemptions and other resources that expire. */
export const exceptionOrders = { ...createdOrders, expireTime: { column: 'expire_time', sort: true } } as const
