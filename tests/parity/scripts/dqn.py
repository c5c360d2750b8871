"""Deep Q-learning: a memory of transitions, a target network that follows softly, masks of final
states, the Huber loss, gradients clipped by value."""

import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

from tests.parity.scripts.reinforce import Walk
from tests.parity.scripts.starting import begin

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self, n_observations, n_actions):
        super().__init__()
        self.layer1 = nn.Linear(n_observations, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, n_actions)

    def forward(self, x):
        x = F.relu(self.layer1(x))
        x = F.relu(self.layer2(x))
        return self.layer3(x)


def main():
    random.seed(0)
    env, memory = Walk(), ReplayMemory(50)
    policy_net, target_net = begin(DQN(2, 2)), DQN(2, 2)
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
    record = []
    for episode in range(3):
        state = torch.tensor(env.reset(), dtype=torch.float32).unsqueeze(0)
        is_done = False
        while not is_done:
            if random.random() < 0.5:
                with torch.no_grad():
                    action = policy_net(state).max(1).indices.view(1, 1)
            else:
                action = torch.tensor([[random.randrange(2)]], dtype=torch.long)
            observation, reward, is_done = env.step(action.item())
            reward = torch.tensor([reward], dtype=torch.float32)
            next_state = (
                None if is_done else torch.tensor(observation, dtype=torch.float32).unsqueeze(0)
            )
            memory.push(state, action, next_state, reward)
            state = next_state
            if len(memory) < 8:
                continue
            if episode < 2:
                continue
            batch = Transition(*zip(*memory.sample(8)))
            non_final_mask = torch.tensor(
                tuple(map(lambda s: s is not None, batch.next_state)), dtype=torch.bool
            )
            non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
            state_batch, action_batch = torch.cat(batch.state), torch.cat(batch.action)
            reward_batch = torch.cat(batch.reward)
            state_action_values = policy_net(state_batch).gather(1, action_batch)
            next_state_values = torch.zeros(8)
            with torch.no_grad():
                next_state_values[non_final_mask] = target_net(non_final_next_states).max(1).values
            expected = (next_state_values * 0.9) + reward_batch
            loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
            optimizer.step()
            target_net_state_dict = target_net.state_dict()
            policy_net_state_dict = policy_net.state_dict()
            for key in policy_net_state_dict:
                target_net_state_dict[key] = policy_net_state_dict[
                    key
                ] * 0.1 + target_net_state_dict[key] * (1 - 0.1)
            target_net.load_state_dict(target_net_state_dict)
            record.append(loss.item())
    q = target_net(torch.from_numpy(np.eye(2, dtype=np.float32)))
    return {"record": record, "q": q.detach().numpy()}
