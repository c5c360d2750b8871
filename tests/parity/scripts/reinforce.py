"""REINFORCE: a policy, actions drawn, returns normalized, losses of an episode summed."""

from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

from tests.parity.scripts.starting import begin


class Walk:
    """A walker on a line that should stay in the middle."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def reset(self):
        self.place, self.speed, self.count = self.rng.uniform(-0.5, 0.5), 0.0, 0
        return np.array([self.place, self.speed], dtype=np.float32)

    def step(self, action):
        self.speed += 0.1 if action else -0.1
        self.place += self.speed
        self.count += 1
        is_done = abs(self.place) > 2 or self.count == 8
        state = np.array([self.place, self.speed], dtype=np.float32)
        return state, 1.0 - abs(self.place), is_done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 8)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(8, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


def main():
    env, policy = Walk(), begin(Policy())
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    eps = np.finfo(np.float32).eps.item()
    draws = np.random.default_rng(1)

    def select_action(state):
        state = torch.from_numpy(state).float().unsqueeze(0)
        probs = policy(state)
        action = torch.tensor([int(draws.uniform() < probs[0, 1].item())])
        log_prob = torch.log(probs.gather(1, action.unsqueeze(1)).squeeze(1))
        policy.saved_log_probs.append(log_prob)
        return action.item()

    found = []
    for _ in range(3):
        state, is_done, total = env.reset(), False, 0.0
        while not is_done:
            state, reward, is_done = env.step(select_action(state))
            policy.rewards.append(reward)
            total += reward
        R, policy_loss, returns = 0, [], deque()
        for r in policy.rewards[::-1]:
            R = r + 0.99 * R
            returns.appendleft(R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + eps)
        for log_prob, value in zip(policy.saved_log_probs, returns):
            policy_loss.append(-log_prob * value)
        optimizer.zero_grad()
        policy_loss = torch.cat(policy_loss).sum()
        policy_loss.backward()
        optimizer.step()
        del policy.rewards[:]
        del policy.saved_log_probs[:]
        found += [total, policy_loss.item()]
    return {"found": found}
